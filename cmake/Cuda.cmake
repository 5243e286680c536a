# liblrnn_cuda.so: the GPU kernels, a plug-in that registers the same ops for CUDA tensors. Built where a
# GPU, nvcc and a CUDA LibTorch are found, or where LRNN_CUDA=ON asks for it; everything else builds without.
# A Python package may be taken elsewhere: it has them wherever nvcc is (LRNN_CUDA=NVCC).
#
# nvcc is called directly: CMake 3.25 does not know nvcc 13's dialects, and the kernels are plain
# files that need no more than a compiler.
set(LRNN_CUDA AUTO CACHE STRING "build the GPU kernels: ON, OFF, AUTO, where a GPU is, or NVCC, where that is")
# Machine code for these chips; that for 80 also runs on 86 and 89.
set(LRNN_CUDA_ARCHS "80;90a" CACHE STRING "the chips to build GPU kernels for")
# Uncompressed, and for Hopper, whose PTX no driver translates for another chip: tests read it.
option(LRNN_CUDA_PTX "keep the kernels' PTX in the library, for tests that run them without a GPU" OFF)

find_program(LRNN_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
set(why_not "")
if(LRNN_SANITIZE)
  set(why_not "the sanitizers are for the CPU")
elseif(LRNN_CUDA STREQUAL "AUTO")
  # A third of all compiling, for nothing where they cannot run.
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
  if(no_gpu AND NOT EXISTS /dev/nvidia0)
    set(why_not "no GPU here; `make cuda` builds them all the same")
  endif()
elseif(NOT LRNN_CUDA)
  set(why_not "LRNN_CUDA=${LRNN_CUDA}")
endif()
if(NOT why_not AND NOT LRNN_NVCC)
  set(why_not "no nvcc")
elseif(NOT why_not AND NOT EXISTS "${LRNN_TORCH}/lib/libtorch_cuda.so")
  set(why_not "a LibTorch without CUDA")
endif()
# Asked for by name, they are not left out in silence.
if(why_not AND LRNN_CUDA AND NOT LRNN_CUDA MATCHES "^(AUTO|NVCC)$" AND NOT LRNN_SANITIZE)
  message(FATAL_ERROR "The GPU kernels cannot be built: ${why_not}. Install the CUDA toolkit (or name it in CUDA_HOME) "
    "and a LibTorch with CUDA, or leave LRNN_CUDA at AUTO.")
endif()
if(why_not)
  message(STATUS "GPU kernels: not built (${why_not})")
  return()
endif()
get_filename_component(cuda_root "${LRNN_NVCC}" REALPATH)
get_filename_component(cuda_root "${cuda_root}/../.." ABSOLUTE)
set(LRNN_CUDA_INCLUDE "${cuda_root}/include")
find_library(LRNN_CUDART cudart HINTS "${cuda_root}/lib64" "${cuda_root}/lib" NO_DEFAULT_PATH)
if(NOT LRNN_CUDART)
  message(STATUS "GPU kernels: not built (no libcudart beside ${LRNN_NVCC})")
  return()
endif()
message(STATUS "GPU kernels: ${LRNN_NVCC}, chips ${LRNN_CUDA_ARCHS}")

set(nvcc_flags -std=c++20 -O3 -I${PROJECT_SOURCE_DIR}/src -Xcompiler -fPIC,-Wall,-Wextra
  --Werror all-warnings)
# Code for every chip named, and once PTX, from which the driver of a chip that is newer makes its own.
set(every_chip "")
set(large_chips "")  # those with the shared memory that chunks with a gate per key channel need
foreach(arch ${LRNN_CUDA_ARCHS})
  set(code sm_${arch})
  if(NOT every_chip MATCHES "compute_[0-9]+\\]" AND NOT arch MATCHES "[a-z]$")
    set(code "[sm_${arch},compute_${arch}]")
  endif()
  list(APPEND every_chip -gencode "arch=compute_${arch},code=${code}")
  if(NOT arch MATCHES "^[78][0-9]")
    list(APPEND large_chips -gencode arch=compute_${arch},code=sm_${arch})
  endif()
endforeach()
if(large_chips)
  list(APPEND large_chips -gencode arch=compute_90,code=compute_90)
endif()
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)
if("90a" IN_LIST LRNN_CUDA_ARCHS)
  list(APPEND nvcc_flags -DLRNN_HOPPER)
else()
  list(FILTER cuda_sources EXCLUDE REGEX "/hopper_[a-z]+\\.cu$")
endif()
if(LRNN_CUDA_PTX)
  list(APPEND nvcc_flags --no-compress)
endif()
set(cuda_objects "")
foreach(source ${cuda_sources})
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src/kernels/cuda ${source})
  set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
  get_filename_component(folder ${object} DIRECTORY)
  set(chips ${every_chip})
  if(name MATCHES "/hopper_")  # instructions no other chip has
    set(chips -gencode arch=compute_90a,code=sm_90a)
  elseif(name MATCHES "^delta_product/chunk_channels" AND large_chips)
    set(chips ${large_chips})
  endif()
  if(LRNN_CUDA_PTX)
    set(chips ${chips} -gencode arch=compute_90a,code=compute_90a)
  endif()
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${LRNN_NVCC} ${nvcc_flags} ${chips} -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d COMMENT "nvcc ${name}" VERBATIM)
  list(APPEND cuda_objects ${object})
endforeach()

lrnn_torch_library(Torch::c10_cuda libc10_cuda.so)
lrnn_torch_library(Torch::cuda libtorch_cuda.so)
file(GLOB_RECURSE cuda_ops CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/cuda/*.cpp ${PROJECT_SOURCE_DIR}/src/ops/*/cuda*.cpp)
add_library(lrnn_cuda SHARED ${cuda_ops} ${cuda_objects})
target_include_directories(lrnn_cuda SYSTEM PRIVATE ${LRNN_CUDA_INCLUDE})
# --no-as-needed: libtorch_cuda registers itself, nobody calls into it by name.
target_link_options(lrnn_cuda PRIVATE -Wl,--no-as-needed)
target_link_libraries(lrnn_cuda PRIVATE lrnn Torch::cuda Torch::c10_cuda ${LRNN_CUDART})
target_precompile_headers(lrnn_cuda REUSE_FROM lrnn_ops)
set_target_properties(lrnn_cuda PROPERTIES UNITY_BUILD ON BUILD_RPATH "${LRNN_RPATH}")
