# Compiler flags and ccache. Every target links decant_options.
add_library(decant_options INTERFACE)
target_compile_options(decant_options INTERFACE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wshadow> -Wnon-virtual-dtor -Woverloaded-virtual
  -Wno-unused-parameter $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> -fno-math-errno -ffp-contract=off)
target_include_directories(decant_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
  ${PROJECT_BINARY_DIR}/generated)
if(DECANT_WERROR)
  # What GCC guesses from the flow of optimized code is often wrong in code it inlined itself: shown, but no error.
  target_compile_options(decant_options INTERFACE -Werror
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized;-Wno-error=array-bounds;-Wno-error=stringop-overflow;-Wno-error=stringop-overread;-Wno-error=free-nonheap-object;-Wno-error=dangling-pointer;-Wno-error=use-after-free;-Wno-error=mismatched-new-delete;-Wno-error=nonnull>")
endif()
if(DECANT_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(decant_options INTERFACE -fpch-preprocess)
endif()
if(BUILD_SHARED_LIBS)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
if(DECANT_SANITIZE)
  target_compile_options(decant_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  target_link_options(decant_options INTERFACE -fsanitize=address,undefined)
endif()
if(DECANT_FUZZ)
  target_compile_options(decant_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(decant_options INTERFACE -fsanitize=address,undefined)
endif()

find_program(DECANT_CCACHE ccache)
if(DECANT_CCACHE)
  # What ccache asks for before it caches files that use precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${DECANT_CCACHE})
endif()
