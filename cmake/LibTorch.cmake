# LibTorch as imported targets: Torch::cpu (libtorch_cpu + libc10) and, for the CUDA plug-in alone, Torch::cuda.
#
# Not find_package(Torch): with a CUDA build of LibTorch it insists on a CUDA toolkit, and under
# CMake 3.25 it fails on nvcc 13 ("CUDA20 dialect"). The libraries need none of that to be linked.
set(LRNN_TORCH "" CACHE PATH "the torch folder (the one with include/ and lib/); empty: ask python3")
set(LRNN_TORCH_VERSION 2.11)

if(NOT LRNN_TORCH)
  find_program(LRNN_PYTHON NAMES python3 HINTS ${PROJECT_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
  find_program(LRNN_PYTHON NAMES python3)
  # find_spec finds the folder without importing torch, which takes seconds.
  execute_process(
    COMMAND ${LRNN_PYTHON} -c "import importlib.util as u; s=u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE LRNN_TORCH_FOUND OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(LRNN_TORCH "${LRNN_TORCH_FOUND}" CACHE PATH "" FORCE)
endif()
if(NOT EXISTS "${LRNN_TORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "No LibTorch was found (looked in '${LRNN_TORCH}').\n"
                      "Hint: run `make setup`, or set LRNN_TORCH to the torch folder of a Python that has torch ${LRNN_TORCH_VERSION}.")
endif()

set(LRNN_TORCH_FOUND_VERSION "unknown")
foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(EXISTS "${LRNN_TORCH}/include/${header}")
    file(STRINGS "${LRNN_TORCH}/include/${header}" lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
    list(TRANSFORM lines REPLACE "[^0-9]+" "")
    list(JOIN lines "." LRNN_TORCH_FOUND_VERSION)
    break()
  endif()
endforeach()
if(NOT LRNN_TORCH_FOUND_VERSION MATCHES "^${LRNN_TORCH_VERSION}(\\.|$)")
  message(FATAL_ERROR "LibTorch in ${LRNN_TORCH} is version '${LRNN_TORCH_FOUND_VERSION}', but lrnn is built for ${LRNN_TORCH_VERSION}.x.\n"
                      "Hint: unset LRNN_TORCH and run `make setup`, which installs the right one into .venv.")
endif()
message(STATUS "LibTorch ${LRNN_TORCH_FOUND_VERSION} in ${LRNN_TORCH}")

function(lrnn_torch_library name file)
  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION "${LRNN_TORCH}/lib/${file}"
    INTERFACE_INCLUDE_DIRECTORIES "${LRNN_TORCH}/include;${LRNN_TORCH}/include/torch/csrc/api/include")
endfunction()

lrnn_torch_library(Torch::c10 libc10.so)
lrnn_torch_library(Torch::cpu libtorch_cpu.so)
target_link_libraries(Torch::cpu INTERFACE Torch::c10)
# libtorch_cpu.so finds its own companions (libcudart, libcupti) through its rpath at run time; the
# linker does not need to see them.
target_link_options(Torch::cpu INTERFACE -Wl,--allow-shlib-undefined)

# One OpenMP run-time per process: LibTorch ships libgomp.so.1, so ours must resolve to that file.
# -fopenmp compiles the pragmas in ATen/Parallel.h; linking the shipped library avoids a second pool.
# Clang's code calls LLVM's run-time, which stands in for libgomp, too; without it our kernels have one thread.
add_library(lrnn_openmp INTERFACE)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  file(GLOB llvm_folders /usr/lib/llvm-*/lib)
  find_library(LRNN_LIBOMP NAMES omp libomp.so.5 HINTS ${llvm_folders})
  if(LRNN_LIBOMP)
    target_compile_options(lrnn_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
    target_link_libraries(lrnn_openmp INTERFACE ${LRNN_LIBOMP})
  else()
    message(STATUS "OpenMP: no libomp for ${CMAKE_CXX_COMPILER}; our CPU kernels will use one thread (libomp-dev has it)")
  endif()
else()
  target_compile_options(lrnn_openmp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  if(EXISTS "${LRNN_TORCH}/lib/libgomp.so.1")
    target_link_libraries(lrnn_openmp INTERFACE "${LRNN_TORCH}/lib/libgomp.so.1")
  else()
    target_link_options(lrnn_openmp INTERFACE -fopenmp)
  endif()
endif()
