# plugins/kafka against a mock cluster inside the process; tests/integration/test_kafka_plugin.py runs the contract
# against a real broker too.
foreach(part contract faults results)
  duebox_test(test_kafka_${part} SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_kafka_${part}.c
    LIBS duebox_contract duebox_kafka_cluster LABELS contract TIMEOUT 600)
endforeach()

# Against a real broker only.
duebox_test(test_kafka_real SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_kafka_real.c
  LIBS duebox_contract duebox_kafka_cluster BROKER)
