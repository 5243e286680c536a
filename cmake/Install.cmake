# `make install`: the program, the libraries, headers, configs and a CMake package. Nothing of it may need
# the clone afterwards.
include(CMakePackageConfigHelpers)
set(LRNN_OWN ${CMAKE_INSTALL_LIBDIR}/lrnn)  # what is ours alone, under the prefix

# A LibTorch inside the clone (make setup puts one into .venv) would go with it, so what we link to is
# installed, too: laid out as under site-packages, for its libraries find each other by these paths.
get_filename_component(torch_folder "${LRNN_TORCH}" REALPATH)
get_filename_component(clone "${PROJECT_SOURCE_DIR}" REALPATH)
string(FIND "${torch_folder}/" "${clone}/" at)
if(at EQUAL 0)
  set(LRNN_INSTALLED_TORCH "\${CMAKE_CURRENT_LIST_DIR}/../../lrnn/torch")
  set(torch_rpath "$ORIGIN/lrnn/torch/lib;$ORIGIN/../${LRNN_OWN}/torch/lib")
  # BLAS and LAPACK are part of libtorch_cpu.so on x86-64, and libraries of their own on ARM.
  file(GLOB names RELATIVE ${torch_folder}/lib ${torch_folder}/lib/libnvpl_*.so.* ${torch_folder}/lib/libarm_compute*.so
       ${torch_folder}/lib/libgfortran.so.*)
  list(APPEND names libc10.so libtorch_cpu.so libgomp.so.1)
  set(nvidia libcudart.so.* libcupti.so.*)  # all that libtorch_cpu.so links to
  if(TARGET lrnn_cuda)
    list(APPEND names libc10_cuda.so libtorch_cuda.so libtorch_cuda_linalg.so libtorch_nvshmem.so libcaffe2_nvrtc.so)
    set(nvidia *.so *.so.*)  # cuDNN and others load more of themselves by name
  endif()
  foreach(name ${names})
    if(EXISTS ${torch_folder}/lib/${name})
      install(PROGRAMS ${torch_folder}/lib/${name} DESTINATION ${LRNN_OWN}/torch/lib)
    endif()
  endforeach()
  install(DIRECTORY ${torch_folder}/include DESTINATION ${LRNN_OWN}/torch)
  list(TRANSFORM nvidia PREPEND "PATTERN;" OUTPUT_VARIABLE patterns)
  if(IS_DIRECTORY ${torch_folder}/../nvidia)
    install(DIRECTORY ${torch_folder}/../nvidia DESTINATION ${LRNN_OWN} USE_SOURCE_PERMISSIONS FILES_MATCHING ${patterns})
  endif()
else()
  set(LRNN_INSTALLED_TORCH "${LRNN_TORCH}")
  set(torch_rpath "${LRNN_TORCH}/lib")
endif()

set(products lrnn lrnn_program)
if(TARGET lrnn_cuda)
  list(APPEND products lrnn_cuda)
endif()
set_target_properties(${products} PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${torch_rpath}")
install(TARGETS ${products} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION bin)
# `find_package(lrnn)` gives lrnn::lrnn; its headers are included as in our own sources.
install(DIRECTORY src/ DESTINATION include/lrnn FILES_MATCHING PATTERN "*.h")
install(DIRECTORY configs DESTINATION share/lrnn)
configure_file(cmake/lrnnConfig.cmake.in lrnnConfig.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lrnnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/lrnnConfig.cmake ${CMAKE_BINARY_DIR}/lrnnConfigVersion.cmake cmake/LibTorch.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lrnn)
