# cmake --install: the program, the library with its headers, and what find_package(decant) and pkg-config need.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS decant RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS decant_library EXPORT decant-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/decant DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/decant)
install(EXPORT decant-targets NAMESPACE decant:: DESTINATION ${config_folder})
configure_package_config_file(cmake/decant-config.cmake.in ${PROJECT_BINARY_DIR}/decant-config.cmake
  INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/decant-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/decant-config.cmake ${PROJECT_BINARY_DIR}/decant-config-version.cmake
  DESTINATION ${config_folder})

# Relative to where it lies, so that the folder may be moved.
file(RELATIVE_PATH DECANT_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# The static library does not say what it needs itself.
set(DECANT_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  set(DECANT_PC_LIBS "-lfmt -lsimdjson -lonig -lutf8proc -lcurl -lcrypto -pthread -lstdc++ -lm")
endif()
configure_file(cmake/decant.pc.in ${PROJECT_BINARY_DIR}/decant.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/decant.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
