# Parts of the running engine, each by itself.
duebox_test(test_log_repeat SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_log_repeat.c LIBS duebox_base LABELS unit)
duebox_test(test_dead_log SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_dead_log.c LIBS duebox_core LABELS unit)
duebox_test(test_rules SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_rules.c LIBS duebox_core LABELS unit)
duebox_test(test_flight SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_flight.c LIBS duebox_core LABELS unit)
duebox_test(test_driver SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_driver.c LIBS duebox_core LABELS unit)
duebox_test(test_lane SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_lane.c LIBS duebox_core LABELS unit)
duebox_test(test_order SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_order.c LIBS duebox_core LABELS unit)
duebox_test(test_stall SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_stall.c LIBS duebox_core LABELS unit)
