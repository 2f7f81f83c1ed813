# The store. Pure parts are unit tests; what needs a server is built here and run by tests/integration/test_store.py
# with DUEBOX_TEST_MYSQL set. --wrap lets those tests lose a connection at a chosen statement.
foreach(part binlog error group rights row settle_judge sql table_checks watch)
  duebox_test(test_outbox_${part} SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_outbox_${part}.c LIBS duebox_outbox LABELS unit)
endforeach()
target_include_directories(test_outbox_rights PRIVATE ${CMAKE_BINARY_DIR}) # the embedded catalogue

foreach(part store_changed store_claims store_early store_every store_locked store_next_id store store_faults store_housekeep store_identity store_lives store_plans store_refused store_results store_results_fit store_schema store_settle store_shards store_silent store_sizes store_tables store_threads store_tls store_unknown)
  add_executable(test_${part} ${CMAKE_SOURCE_DIR}/tests/integration/test_${part}.c
    ${CMAKE_SOURCE_DIR}/tests/integration/store_fixture.c)
  target_link_libraries(test_${part} PRIVATE duebox_build duebox_outbox PkgConfig::MYSQL PkgConfig::CMOCKA)
  target_include_directories(test_${part} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(test_${part} PRIVATE STORE_SQL_DIR="${CMAKE_SOURCE_DIR}/sql")
  target_link_options(test_${part} PRIVATE -Wl,--wrap=mysql_real_query)
  set_target_properties(test_${part} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
target_link_libraries(test_store_changed PRIVATE duebox_core) # the rules
target_link_libraries(test_store_early PRIVATE duebox_core)
target_link_libraries(test_store_every PRIVATE duebox_core)
target_link_libraries(test_store_lives PRIVATE duebox_core)
target_link_libraries(test_store_results_fit PRIVATE duebox_core)
