# plugins/amqp against a real broker: DUEBOX_TEST_AMQP_URL names it (tests/integration/test_amqp_plugin.py starts one).
foreach(part contract faults results tls)
  duebox_test(test_amqp_${part}
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_amqp_${part}.c ${CMAKE_CURRENT_LIST_DIR}/amqp_broker.c
            ${CMAKE_SOURCE_DIR}/tests/support/tcp_relay.c
    LIBS duebox_contract duebox_amqp_parts BROKER)
endforeach()

# The same plugin against a broker played by the test: no server needed.
foreach(part script suspects apart apart_fails apart_random routes script_results flood)
  duebox_test(test_amqp_${part}
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_amqp_${part}.c ${CMAKE_CURRENT_LIST_DIR}/amqp_lab.c
            ${CMAKE_SOURCE_DIR}/tests/support/amqp_script.c
    LIBS duebox_contract duebox_amqp_parts LABELS contract)
endforeach()
# Ten minutes and minutes of waiting are jumps of the plugin's clock.
foreach(part apart apart_fails apart_random)
  target_sources(test_amqp_${part} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/amqp_parted.c)
  target_link_options(test_amqp_${part} PRIVATE -Wl,--wrap=amqp_now_us)
endforeach()
