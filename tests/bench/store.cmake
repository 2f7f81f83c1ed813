# outbox/ beside a raw loop; run by hand: build/release/tests/store_bench
add_executable(store_bench ${CMAKE_CURRENT_LIST_DIR}/store_bench.c)
target_link_libraries(store_bench PRIVATE duebox_build duebox_outbox PkgConfig::MYSQL)
set_target_properties(store_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
