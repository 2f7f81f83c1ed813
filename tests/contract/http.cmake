# plugins/http: the common suite; a server that misbehaves; where no request may leave; proxies; HTTP/2; crowds.
duebox_test(test_http_contract SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_http_contract.c
  ${CMAKE_CURRENT_LIST_DIR}/http_server.c
  LIBS duebox_contract duebox_http_parts PkgConfig::MICROHTTPD LABELS contract TIMEOUT 300)
target_compile_definitions(test_http_contract PRIVATE HTTP_MODULE="$<TARGET_FILE:duebox_http>")
add_dependencies(test_http_contract duebox_http)

foreach(name hostile unreachable proxy h2 crowd)
  duebox_test(test_http_${name} SOURCES ${CMAKE_CURRENT_LIST_DIR}/test_http_${name}.c
    ${CMAKE_CURRENT_LIST_DIR}/hostile_server.c ${CMAKE_CURRENT_LIST_DIR}/http_case.c
    LIBS duebox_http_parts duebox_test_host LABELS contract TIMEOUT 300)
  target_compile_definitions(test_http_${name} PRIVATE
    HTTP_HOSTILE="${CMAKE_SOURCE_DIR}/tests/support/http_hostile.py")
endforeach()
