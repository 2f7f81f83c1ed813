# The command line's parsing, selection and output, and selections as SQL.
foreach(part args select text output)
  duebox_test(unit_cli_${part} SOURCES test_cli_${part}.c LIBS duebox_cli LABELS unit)
endforeach()
duebox_test(unit_operator_filter SOURCES test_operator_filter.c LIBS duebox_operator LABELS unit)

# docs/man/duebox.1 is made from the table of commands.
add_executable(cli_manual ${CMAKE_SOURCE_DIR}/tests/lint/cli_manual.c)
target_link_libraries(cli_manual PRIVATE duebox_cli)
set_target_properties(cli_manual PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME lint_manual COMMAND /usr/bin/python3 ${CMAKE_SOURCE_DIR}/tests/lint/check_manual.py
  ${CMAKE_SOURCE_DIR}/docs/man/duebox.1 $<TARGET_FILE:cli_manual>)
set_tests_properties(lint_manual PROPERTIES LABELS lint)
