#include <cstdio>

#include "tests/emulator/runtime/runtime.h"

// The one device there is, and what can be asked about it.
namespace lrnn::emulator {
namespace {

constexpr int kMostGridX = 0x7fffffff, kMostGrid = 65535, kMostBlockZ = 64;
constexpr int kBusBits = 6144, kL2 = 60 << 20, kConstants = 64 * 1024;

size_t total_memory() {
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return total;
}

// No attribute that is not known gets a number made up for it.
bool attribute(cudaDeviceAttr which, int& value) {
  const auto is = [&](auto x) {
    value = int(x);
    return true;
  };
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: return is(kMostThreads);
    case cudaDevAttrMaxBlockDimZ: return is(kMostBlockZ);
    case cudaDevAttrMaxGridDimX: return is(kMostGridX);
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: return is(kMostGrid);
    case cudaDevAttrMaxSharedMemoryPerBlock: return is(kShared);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return is(kMostShared);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return is(kSharedOfMultiprocessor);
    case cudaDevAttrReservedSharedMemoryPerBlock: return is(kReservedShared);
    case cudaDevAttrTotalConstantMemory: return is(kConstants);
    case cudaDevAttrWarpSize: return is(kWarp);
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: return is(kRegisters);
    case cudaDevAttrMultiProcessorCount: return is(kMultiprocessors);
    case cudaDevAttrMaxThreadsPerMultiProcessor: return is(kThreadsOfMultiprocessor);
    case cudaDevAttrMaxBlocksPerMultiprocessor: return is(kBlocksOfMultiprocessor);
    case cudaDevAttrComputeCapabilityMajor: return is(kMajor);
    case cudaDevAttrComputeCapabilityMinor: return is(kMinor);
    case cudaDevAttrL2CacheSize: return is(kL2);
    case cudaDevAttrGlobalMemoryBusWidth: return is(kBusBits);
    case cudaDevAttrClusterLaunch:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels: return is(1);
    // What the runtime here does not do.
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrIntegrated: return is(0);
    default: return false;
  }
}

cudaError_t check_device(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

}  // namespace
}  // namespace lrnn::emulator

using namespace lrnn::emulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return answer(check_device(device)); }
cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  if (device != 0) return answer(cudaErrorInvalidDevice);
  return attribute(which, *value) ? cudaSuccess : answer(cudaErrorInvalidValue);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (device != 0) return answer(cudaErrorInvalidDevice);
  *p = {};
  std::snprintf(p->name, sizeof p->name, "NVIDIA H200 (emulated)");
  p->totalGlobalMem = total_memory();
  p->sharedMemPerBlock = kShared;
  p->sharedMemPerBlockOptin = kMostShared;
  p->sharedMemPerMultiprocessor = kSharedOfMultiprocessor;
  p->reservedSharedMemPerBlock = kReservedShared;
  p->regsPerBlock = p->regsPerMultiprocessor = kRegisters;
  p->warpSize = kWarp;
  p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = kMostThreads;
  p->maxThreadsDim[2] = kMostBlockZ;
  p->maxGridSize[0] = kMostGridX;
  p->maxGridSize[1] = p->maxGridSize[2] = kMostGrid;
  p->totalConstMem = kConstants;
  p->major = kMajor, p->minor = kMinor;
  p->multiProcessorCount = kMultiprocessors;
  p->maxThreadsPerMultiProcessor = kThreadsOfMultiprocessor;
  p->maxBlocksPerMultiProcessor = kBlocksOfMultiprocessor;
  p->memoryBusWidth = kBusBits, p->l2CacheSize = kL2;
  p->unifiedAddressing = p->concurrentKernels = p->clusterLaunch = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return answer(cudaErrorPeerAccessUnsupported);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
// Whatever was asked for has been done.
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

}  // extern "C"
