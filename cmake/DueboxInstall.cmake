# What is installed besides the programs, the plugins and what authors of plugins need. Nothing in it names the prefix, so
# that the installed tree may be moved. The documentation keeps the layout of the sources: its links hold.
include(GNUInstallDirs)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/duebox.service DESTINATION lib/systemd/system)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/duebox.sysusers DESTINATION lib/sysusers.d RENAME duebox.conf)
install(FILES ${CMAKE_SOURCE_DIR}/packaging/duebox.tmpfiles DESTINATION lib/tmpfiles.d RENAME duebox.conf)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/examples/duebox.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES ${CMAKE_SOURCE_DIR}/sql/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/sql)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/sql/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}/sql FILES_MATCHING PATTERN *.sql)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(plugin kafka amqp http)
  install(FILES ${CMAKE_SOURCE_DIR}/plugins/${plugin}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/plugins/${plugin})
endforeach()
