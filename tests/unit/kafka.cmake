foreach(part outcome window search reread standing message options reading throttle)
  duebox_test(test_kafka_${part} SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_kafka_${part}.c
    LIBS duebox_kafka_parts duebox_test_host LABELS unit)
endforeach()
