# plugins/amqp: its parts, each on its own.
foreach(part encode outcome window acks set queue target message options conn watch)
  duebox_test(test_amqp_${part} SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_amqp_${part}.c
    LIBS duebox_amqp_parts duebox_test_host LABELS unit)
endforeach()
