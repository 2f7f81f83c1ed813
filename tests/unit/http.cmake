# plugins/http: the pure parts, each on its own.
foreach(part sign address outcome response request options turns goaway)
  duebox_test(test_http_${part} SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_http_${part}.c
    LIBS duebox_http_parts duebox_test_host LABELS unit)
endforeach()
duebox_test(test_http_mask SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_http_mask.c
  LIBS duebox_http_parts duebox_core LABELS unit)
