# plugins/kafka beside a bare librdkafka loop; run by hand: build/release/tests/kafka_bench
add_executable(kafka_bench ${CMAKE_CURRENT_LIST_DIR}/kafka_bench.c)
target_link_libraries(kafka_bench PRIVATE duebox_build duebox_kafka_parts)
set_target_properties(kafka_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
