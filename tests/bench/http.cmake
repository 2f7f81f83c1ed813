# plugins/http beside a bare libcurl loop; run by hand: build/release/tests/http_bench
add_executable(http_bench ${CMAKE_CURRENT_LIST_DIR}/http_bench.c)
target_link_libraries(http_bench PRIVATE duebox_build duebox_http_parts duebox_test_host)
target_include_directories(http_bench PRIVATE ${CMAKE_SOURCE_DIR}/tests)
set_target_properties(http_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
