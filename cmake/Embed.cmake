# lrnn_embed(target file...): src/cli/explain.js is the text `explain_js` of "embedded/explain.js.h". Scripts and
# styles of our HTML pages are files of their own, which editors and linters know, and part of the library.
function(lrnn_embed target)
  foreach(file ${ARGN})
    get_filename_component(EMBEDDED_FILE ${file} NAME)
    string(MAKE_C_IDENTIFIER ${EMBEDDED_FILE} EMBEDDED_NAME)
    file(READ ${file} EMBEDDED_TEXT)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    configure_file(cmake/embedded.h.in embedded/${EMBEDDED_FILE}.h @ONLY)
  endforeach()
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR})
endfunction()
