# The admin listener in front of a fake engine. The fakes are compiled into each test, ahead of the library that calls
# them.
foreach(part rules api sight server bodies metrics)
  duebox_test(test_admin_${part}
    SOURCES test_admin_${part}.c ../support/admin_fixture.c ../support/fake_engine.c ../support/http_client.c
      ../support/metrics_text.c
      ${CMAKE_SOURCE_DIR}/core/metrics.c
    LIBS duebox_admin duebox_domain LABELS unit)
endforeach()

duebox_test(test_minder SOURCES test_minder.c LIBS duebox_admin LABELS unit)
duebox_test(test_turns SOURCES test_turns.c LIBS duebox_admin LABELS unit)

# Not a test: the page on moving figures, for whoever works on it.
add_executable(admin_show ../support/admin_show.c ../support/fake_engine.c ${CMAKE_SOURCE_DIR}/core/metrics.c)
target_link_libraries(admin_show PRIVATE duebox_build duebox_admin duebox_domain)
target_include_directories(admin_show PRIVATE ${CMAKE_SOURCE_DIR}/tests)

# docs/openapi.yaml against the routing table and a real answer.
add_executable(admin_endpoints ../support/admin_endpoints.c ../support/fake_engine.c ../support/http_client.c
  ${CMAKE_SOURCE_DIR}/core/metrics.c)
target_link_libraries(admin_endpoints PRIVATE duebox_build duebox_admin duebox_domain)
target_include_directories(admin_endpoints PRIVATE ${CMAKE_SOURCE_DIR}/tests)
add_test(NAME test_admin_openapi COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/admin_openapi.py
  $<TARGET_FILE:admin_endpoints> ${CMAKE_SOURCE_DIR}/docs/openapi.yaml)
set_tests_properties(test_admin_openapi PROPERTIES LABELS unit TIMEOUT 120)
foreach(tool admin_show admin_endpoints)
  set_target_properties(${tool} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
