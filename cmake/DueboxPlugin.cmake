# duebox_plugin(name SOURCES a.c .. LIBS ..): a plugin as a module of its own in <build>/plugins/<name>.so.
# It sees include/duebox and its own folder, nothing of the host, and exports the descriptor only.
# The same sources are available to unit tests as the static target duebox_<name>_parts.
function(duebox_plugin name)
  cmake_parse_arguments(P "" "" "SOURCES;LIBS" ${ARGN})
  add_library(duebox_${name}_parts STATIC ${P_SOURCES})
  target_include_directories(duebox_${name}_parts BEFORE PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  get_target_property(options duebox_build INTERFACE_COMPILE_OPTIONS)
  get_target_property(definitions duebox_build INTERFACE_COMPILE_DEFINITIONS)
  get_target_property(link_options duebox_build INTERFACE_LINK_OPTIONS)
  target_compile_options(duebox_${name}_parts PRIVATE ${options})
  target_compile_definitions(duebox_${name}_parts PRIVATE ${definitions})
  target_link_libraries(duebox_${name}_parts PUBLIC ${P_LIBS} Threads::Threads)

  add_library(duebox_${name} MODULE $<TARGET_OBJECTS:duebox_${name}_parts>)
  target_link_libraries(duebox_${name} PRIVATE ${P_LIBS} Threads::Threads)
  if(link_options)
    target_link_options(duebox_${name} PRIVATE ${link_options})
  endif()
  if(NOT DUEBOX_SANITIZE)
    target_link_options(duebox_${name} PRIVATE -Wl,--no-undefined)
  endif()
  target_link_options(duebox_${name} PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/plugins/plugin.map)
  set_target_properties(duebox_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  install(TARGETS duebox_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/duebox/plugins)
endfunction()
