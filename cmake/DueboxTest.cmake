# duebox_test(name SOURCES a.c .. LIBS .. LABELS ..): one cmocka executable and its ctest entry, with a time limit; BROKER
# for one that needs a broker: no entry.
function(duebox_test name)
  cmake_parse_arguments(T "BROKER" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE duebox_build PkgConfig::CMOCKA ${T_LIBS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(T_BROKER) # tests/integration starts the broker, and runs it
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT})
endfunction()
