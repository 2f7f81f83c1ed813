# What is installed for authors of plugins (component dev): headers, duebox.pc, duebox-config.cmake, the linker's map and
# the conformance kit. Everything finds itself relative to where it lies, so a copy elsewhere works too.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(DUEBOX_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/duebox/plugins)
set(DUEBOX_DATA_DIR ${CMAKE_INSTALL_DATADIR}/duebox)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/duebox/plugin.h)
file(STRINGS ${CMAKE_SOURCE_DIR}/include/duebox/plugin.h abi REGEX "#define DUEBOX_ABI_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9]*([0-9]+)u[^0-9]*([0-9]+)u" "\\1.\\2" DUEBOX_ABI "${abi}")

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH DUEBOX_PC_TO_PREFIX /${pc_dir} /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/duebox.pc.in ${CMAKE_BINARY_DIR}/sdk/duebox.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sdk/duebox.pc DESTINATION ${pc_dir} COMPONENT dev)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/duebox)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/duebox-config.cmake.in
  ${CMAKE_BINARY_DIR}/sdk/duebox-config.cmake INSTALL_DESTINATION ${config_dir}
  PATH_VARS DUEBOX_PLUGIN_DIR DUEBOX_DATA_DIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sdk/duebox-config-version.cmake COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)
install(FILES ${CMAKE_BINARY_DIR}/sdk/duebox-config.cmake ${CMAKE_BINARY_DIR}/sdk/duebox-config-version.cmake
  DESTINATION ${config_dir} COMPONENT dev)
install(EXPORT duebox-targets NAMESPACE duebox:: DESTINATION ${config_dir} COMPONENT dev)

install(FILES ${CMAKE_SOURCE_DIR}/plugins/plugin.map DESTINATION ${DUEBOX_DATA_DIR} COMPONENT dev)
set(kit ${DUEBOX_DATA_DIR}/contract/tests)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tests/contract/ DESTINATION ${kit}/contract COMPONENT dev
  FILES_MATCHING PATTERN sink_contract*.[ch] PATTERN source_contract.[ch])
install(DIRECTORY ${CMAKE_SOURCE_DIR}/tests/support/ DESTINATION ${kit}/support COMPONENT dev
  FILES_MATCHING PATTERN fake_host*.[ch] PATTERN own_time.[ch] PATTERN fake_tasks.c PATTERN fake_results.c PATTERN fake_expand.c
  PATTERN servers EXCLUDE PATTERN kafka EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/plugin DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT dev)
install(FILES ${CMAKE_SOURCE_DIR}/docs/PLUGIN.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT dev)
