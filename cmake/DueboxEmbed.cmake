# duebox_embed(target prefix dir file ..): makes each file a NUL-terminated string <prefix>_<name> (dots and dashes become
# underscores, extension dropped) in a generated <prefix>.h / .c that belongs to the target.
function(duebox_embed target prefix dir)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(files)
  foreach(file ${ARGN})
    list(APPEND files ${dir}/${file})
  endforeach()
  add_custom_command(
    OUTPUT ${out}/${prefix}.c ${out}/${prefix}.h
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DPREFIX=${prefix} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out}/${prefix}.c ${out}/${prefix}.h)
  target_include_directories(${target} PRIVATE ${out})
endfunction()
