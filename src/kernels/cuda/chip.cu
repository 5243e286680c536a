#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "kernels/cuda/chip.h"

namespace lrnn::kernels::cuda {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();
std::atomic<int> most_shared = kNoLimit;  // below kNoLimit: as on a lesser chip

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, device);
  return value;
}

// Every launch asks, so each thread remembers the device it asked for last.
const Chip& chip_of(int device) {
  thread_local int known = -1;
  thread_local Chip chip;
  if (device == known) return chip;
  chip.shared = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  chip.processors = attribute(cudaDevAttrMultiProcessorCount, device);
#ifdef LRNN_HOPPER
  chip.hopper = attribute(cudaDevAttrComputeCapabilityMajor, device) == 9 &&
                attribute(cudaDevAttrComputeCapabilityMinor, device) == 0;
#endif
  known = device;
  return chip;
}

}  // namespace

Chip chip() {
  int device = 0;
  cudaGetDevice(&device);
  Chip here = chip_of(device);
  const int limit = most_shared;
  here.shared = std::min(here.shared, limit);
  here.hopper = here.hopper && limit == kNoLimit;
  return here;
}

}  // namespace lrnn::kernels::cuda

// Bytes by the tables of the CUDA C++ Programming Guide.
extern "C" bool lrnn_choose_kernels_as_on(int capability) {
  using namespace lrnn::kernels::cuda;
  switch (capability) {
    case 0: most_shared = kNoLimit; return true;
    case 80: most_shared = 163 * 1024; return true;
    case 86:
    case 89:
    case 120: most_shared = 99 * 1024; return true;
    case 100: most_shared = 227 * 1024; return true;
    default: return false;
  }
}
