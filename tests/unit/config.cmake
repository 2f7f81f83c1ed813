# Options, YAML, configuration, and the pure small rules around them.
set(test_plugins ${CMAKE_BINARY_DIR}/tests/plugins)

foreach(part readiness cpus log options yaml way template headers record record_broken result_origin retry task_state plugin_check arena sync)
  duebox_test(unit_${part} SOURCES test_${part}.c LIBS duebox_config m LABELS unit)
endforeach()

foreach(part config config_answers config_errors reload_keys)
  duebox_test(unit_${part} SOURCES test_${part}.c config_fixture.c LIBS duebox_config m LABELS unit)
  target_compile_definitions(unit_${part} PRIVATE TEST_PLUGINS="${test_plugins}")
  add_dependencies(unit_${part} test_plugins)
endforeach()

foreach(part config_example config_secrets link)
  duebox_test(unit_${part} SOURCES test_${part}.c config_fixture.c LIBS duebox_config LABELS unit)
  target_compile_definitions(unit_${part} PRIVATE TEST_PLUGINS="${CMAKE_BINARY_DIR}/plugins")
  add_dependencies(unit_${part} duebox_kafka duebox_amqp duebox_http)
endforeach()

# docs/CONFIGURATION.md holds the option tables as this program prints them.
add_executable(config_docs ${CMAKE_SOURCE_DIR}/tests/lint/config_docs.c)
target_link_libraries(config_docs PRIVATE duebox_config)
set_target_properties(config_docs PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_dependencies(config_docs duebox_kafka duebox_amqp duebox_http)
add_test(NAME lint_config_docs
  COMMAND /usr/bin/python3 ${CMAKE_SOURCE_DIR}/tests/lint/check_config_docs.py ${CMAKE_SOURCE_DIR}/docs/CONFIGURATION.md
    $<TARGET_FILE:config_docs> kafka amqp http)
set_tests_properties(lint_config_docs PROPERTIES LABELS lint
  ENVIRONMENT "DUEBOX_PLUGIN_PATH=${CMAKE_BINARY_DIR}/plugins")
