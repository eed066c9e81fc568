# The files of each instruction set are compiled with its flags; they include nothing but intrinsics and kernels/simd
# headers, so that no function of an ordinary header is ever built with them.
set(decant_isa ${CMAKE_CURRENT_SOURCE_DIR}/kernels/simd/isa)
set(isa_common -O3 -fno-math-errno -fno-trapping-math -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -Wno-uninitialized -Wno-ignored-attributes)

function(decant_isa_source name)
  target_sources(decant_kernels PRIVATE ${decant_isa}/${name}.cc)
  set_source_files_properties(${decant_isa}/${name}.cc TARGET_DIRECTORY decant_kernels PROPERTIES
    COMPILE_OPTIONS "${isa_common};${ARGN}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

decant_isa_source(baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  decant_isa_source(avx2 -mavx2 -mfma -mf16c)
  decant_isa_source(avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
  decant_isa_source(avx512_vnni -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512)
  decant_isa_source(amx -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mamx-tile -mamx-bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  decant_isa_source(neon)
endif()
