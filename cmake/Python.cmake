# The Python package: the modules of python/lrnn, and beside them
#
#   lrnn/lib/liblrnn.so, and liblrnn_cuda.so where it is built    lrnn/bin/lrnn
#   lrnn/lib/libyaml-cpp.so.*, libsentencepiece*.so.*, which      lrnn/share/lrnn/configs
#   torch does not bring
#
# In a wheel these are the component `python` (pyproject.toml). In a build folder build/python/lrnn has the
# same layout, made of links, so that `PYTHONPATH=build/python` is the package without installing anything.
set(python_parts lrnn lrnn_program)
if(TARGET lrnn_cuda)
  list(APPEND python_parts lrnn_cuda)
endif()
add_custom_target(python_parts DEPENDS ${python_parts})

install(TARGETS ${python_parts} COMPONENT python EXCLUDE_FROM_ALL LIBRARY DESTINATION lrnn/lib RUNTIME DESTINATION lrnn/bin)
install(DIRECTORY configs COMPONENT python EXCLUDE_FROM_ALL DESTINATION lrnn/share/lrnn)
# Wherever site-packages is, torch lies beside lrnn: nothing of the machine that built it stays in the path.
# CMake leaves room for the longest path it knows, that of `make install`.
set(lib_rpath "$ORIGIN:$ORIGIN/../../torch/lib")
set(bin_rpath "$ORIGIN/../lib:$ORIGIN/../../torch/lib")
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lrnn\")
  file(GLOB libraries \"\${root}/lib/liblrnn*.so\")
  foreach(file \${libraries})
    file(RPATH_SET FILE \"\${file}\" NEW_RPATH [[${lib_rpath}]])
  endforeach()
  file(RPATH_SET FILE \"\${root}/bin/lrnn\" NEW_RPATH [[${bin_rpath}]])
" COMPONENT python EXCLUDE_FROM_ALL)
if(TARGET yaml-cpp::yaml-cpp)
  set(yaml yaml-cpp::yaml-cpp)
else()
  set(yaml yaml-cpp)
endif()
get_target_property(yaml_type ${yaml} TYPE)
if(yaml_type STREQUAL "SHARED_LIBRARY")
  install(FILES $<TARGET_FILE:${yaml}> RENAME $<TARGET_SONAME_FILE_NAME:${yaml}> COMPONENT python EXCLUDE_FROM_ALL
          DESTINATION lrnn/lib)
endif()
# SentencePiece has no CMake package to ask for its soname.
foreach(library ${LRNN_SENTENCEPIECE} ${LRNN_SENTENCEPIECE_TRAIN})
  get_filename_component(file ${library} REALPATH)
  get_filename_component(name ${library} NAME)
  if(file MATCHES "\\.so\\.([0-9]+)")
    install(FILES ${file} RENAME ${name}.${CMAKE_MATCH_1} COMPONENT python EXCLUDE_FROM_ALL DESTINATION lrnn/lib)
  endif()
endforeach()
if(SKBUILD)
  install(PROGRAMS python/script/lrnn COMPONENT python_script EXCLUDE_FROM_ALL DESTINATION ${SKBUILD_SCRIPTS_DIR})
endif()

set(links ${CMAKE_BINARY_DIR}/python/lrnn)
file(REMOVE_RECURSE ${links})
file(GLOB_RECURSE modules CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/lrnn
     ${PROJECT_SOURCE_DIR}/python/lrnn/*.py ${PROJECT_SOURCE_DIR}/python/lrnn/*.pyi ${PROJECT_SOURCE_DIR}/python/lrnn/py.typed)
foreach(module ${modules})
  get_filename_component(folder ${links}/${module} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/lrnn/${module} ${links}/${module} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_BINARY_DIR} ${links}/lib SYMBOLIC)
file(CREATE_LINK ${CMAKE_BINARY_DIR} ${links}/bin SYMBOLIC)
