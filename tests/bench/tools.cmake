# What tests/bench/run loads, measures and compares with: tools/.
set(tools ${CMAKE_CURRENT_LIST_DIR}/tools)
set(book ${tools}/book.c ${tools}/histogram.c)

add_executable(raw_loop ${tools}/raw_loop.c ${tools}/raw_kafka.c ${tools}/raw_amqp.c ${tools}/raw_http.c
  ${tools}/raw_null.c ${tools}/bench_amqp.c)
target_link_libraries(raw_loop PRIVATE duebox_build duebox_kafka_parts duebox_test_host PkgConfig::MYSQL
  PkgConfig::RABBITMQ PkgConfig::CURL Threads::Threads)
target_include_directories(raw_loop PRIVATE ${CMAKE_SOURCE_DIR}/tests)

add_executable(receive ${tools}/receive.c ${tools}/receive_kafka.c ${tools}/receive_amqp.c ${tools}/receive_http.c
  ${tools}/bench_amqp.c ${book})
target_link_libraries(receive PRIVATE duebox_build PkgConfig::RDKAFKA PkgConfig::RABBITMQ Threads::Threads)

add_executable(insert ${tools}/insert.c ${book})
target_link_libraries(insert PRIVATE duebox_build PkgConfig::MYSQL)

add_executable(pulse ${tools}/pulse.c)
target_link_libraries(pulse PRIVATE duebox_build PkgConfig::MYSQL)

set_target_properties(raw_loop receive insert pulse PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# A plugin that measures the hand-over.
add_library(testplugin_probe MODULE ${tools}/probe_sink.c ${book})
target_link_libraries(testplugin_probe PRIVATE duebox_build)
set_target_properties(testplugin_probe PROPERTIES PREFIX "" OUTPUT_NAME probe
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/plugins)
