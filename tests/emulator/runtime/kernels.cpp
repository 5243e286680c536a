#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/emulator/device.h"
#include "tests/emulator/runtime/capture.h"
#include "tests/emulator/runtime/runtime.h"

// Kernels: what the compiler's code registers as a library is loaded, and launches.
namespace lrnn::emulator {
namespace {

struct Kernel {
  std::string name;
  size_t dynamic_shared = kShared;  // the most a launch may have
  bool any_cluster = false;         // more than the 8 blocks that every chip allows
};

class Kernels {
 public:
  // Never destroyed: libraries are unloaded as the program ends.
  static Kernels& the() {
    static auto* const one = new Kernels;
    return *one;
  }
  void add(const void* stub, const char* name) {
    const std::lock_guard lock(mutex_);
    of_[stub] = {name};
  }
  Kernel* find(const void* stub) {
    const std::lock_guard lock(mutex_);
    const auto found = of_.find(stub);
    return found == of_.end() ? nullptr : &found->second;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, Kernel> of_;
};

constexpr int kMostGrid = 65535, kMostGridX = 0x7fffffff;
constexpr uint32_t kMostBlockZ = 64, kPortableCluster = 8, kMostCluster = 16;

Dim3 dim3_of(const dim3& d) { return {d.x, d.y, d.z}; }

cudaError_t check(const Launch& l, const Kernel& kernel) {
  if (!l.grid.count() || !l.block.count() || l.grid.x > kMostGridX || l.grid.y > kMostGrid ||
      l.grid.z > kMostGrid || l.block.z > kMostBlockZ)
    return cudaErrorInvalidConfiguration;
  const auto known = attributes(l.stub);
  if (l.block.count() > std::min(kMostThreads, known.threads)) return cudaErrorInvalidConfiguration;
  if (l.shared > kernel.dynamic_shared || l.shared + known.shared > kMostShared)
    return cudaErrorInvalidValue;
  if (!l.cluster.count() || l.grid.x % l.cluster.x || l.grid.y % l.cluster.y ||
      l.grid.z % l.cluster.z ||
      l.cluster.count() > (kernel.any_cluster ? kMostCluster : kPortableCluster))
    return cudaErrorInvalidConfiguration;
  return cudaSuccess;
}

// The values a launch was given, to be used again.
struct Arguments {
  std::vector<std::unique_ptr<char[]>> values;
  std::vector<void*> pointers;

  Arguments(void** from, const std::vector<size_t>& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      // new[] aligns enough for all but tensor maps, which the engine reads by bytes.
      values.push_back(std::make_unique<char[]>(bytes[i]));
      std::memcpy(values.back().get(), from[i], bytes[i]);
      pointers.push_back(values.back().get());
    }
  }
};

// What the kernel may write to: all that its arguments, structs too, point to.
void save_reachable(Turn& turn, void** arguments, const std::vector<size_t>& bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    for (size_t at = 0; at + sizeof(void*) <= bytes[i]; at += sizeof(void*)) {
      void* address = nullptr;
      std::memcpy(&address, static_cast<char*>(arguments[i]) + at, sizeof address);
      turn.may_write(address);
    }
}

cudaError_t run(Launch l, cudaStream_t stream) {
  const auto* kernel = Kernels::the().find(l.stub);
  if (!kernel) return answer(cudaErrorInvalidDeviceFunction);
  if (const auto error = check(l, *kernel); error != cudaSuccess) return answer(error);
  Turn turn(stream);
  if (!turn.captured()) {
    launch(l);
    return cudaSuccess;
  }
  const auto bytes = attributes(l.stub).parameters;
  save_reachable(turn, l.arguments, bytes);
  const auto arguments = std::make_shared<Arguments>(l.arguments, bytes);
  launch(l);
  record(stream, [l, arguments]() mutable {
    l.arguments = arguments->pointers.data();
    launch(l);
  });
  return cudaSuccess;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> pushed;  // <<<...>>> to be, of the launches under way

struct Binary {
  int number;
};

}  // namespace
}  // namespace lrnn::emulator

using namespace lrnn::emulator;

extern "C" {

// ------------------------------------------------------------------ called by what nvcc makes
void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new Binary{add_binary(wrapper)});
}
void __cudaRegisterFatBinaryEnd(void**) {}
// Kernels stay known: the library's code may still be called by others' destructors.
void __cudaUnregisterFatBinary(void** handle) { delete reinterpret_cast<Binary*>(handle); }
void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  add_kernel(reinterpret_cast<Binary*>(handle)->number, stub, name);
  Kernels::the().add(stub, name);
}
void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int, size_t size, int,
                       int) {
  add_variable(reinterpret_cast<Binary*>(handle)->number, shadow, name, size);
}
char __cudaInitModule(void**) { return 1; }
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  pushed.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (pushed.empty()) return answer(cudaErrorIllegalState);
  const auto& last = pushed.back();
  *grid = last.grid, *block = last.block, *shared = last.shared;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  pushed.pop_back();
  return cudaSuccess;
}
// A kernel's handle is the address of its stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

// -------------------------------------------------------------------------------------- launches
cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return run({stub, dim3_of(grid), dim3_of(block), {}, shared, arguments}, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  Launch l{stub, dim3_of(config->gridDim), dim3_of(config->blockDim),
           {},   config->dynamicSmemBytes, arguments};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& attribute = config->attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeClusterDimension: {
        const auto& d = attribute.val.clusterDim;
        l.cluster = {d.x, d.y, d.z};
        break;
      }
      // It begins when the kernel before has ended, all the same; whoever looks for races is told.
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        l.dependent = attribute.val.programmaticStreamSerializationAllowed != 0;
        break;
      // Hints.
      case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      case cudaLaunchAttributePriority:
      case cudaLaunchAttributeIgnore: break;
      default: return answer(cudaErrorNotSupported);
    }
  }
  return run(l, config->stream);
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute which, int value) {
  auto* kernel = Kernels::the().find(stub);
  if (!kernel) return answer(cudaErrorInvalidDeviceFunction);
  switch (which) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || size_t(value) + attributes(stub).shared > kMostShared)
        return answer(cudaErrorInvalidValue);
      kernel->dynamic_shared = size_t(value);
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      kernel->any_cluster = value != 0;
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout: return cudaSuccess;  // a hint
    default: return answer(cudaErrorNotSupported);
  }
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* stub) {
  const auto* kernel = Kernels::the().find(stub);
  if (!kernel) return answer(cudaErrorInvalidDeviceFunction);
  const auto known = attributes(stub);
  *to = {};
  to->sharedSizeBytes = known.shared, to->localSizeBytes = known.local;
  to->maxThreadsPerBlock = std::min(kMostThreads, known.threads);
  to->numRegs = known.registers;
  to->ptxVersion = to->binaryVersion = kMajor * 10 + kMinor;
  to->maxDynamicSharedSizeBytes = int(kernel->dynamic_shared);
  to->nonPortableClusterSizeAllowed = kernel->any_cluster;
  return cudaSuccess;
}
// By threads, shared memory and, where the engine knows how many a thread has, registers.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int threads, size_t shared,
                                                                   unsigned) {
  const auto* kernel = Kernels::the().find(stub);
  if (!kernel) return answer(cudaErrorInvalidDeviceFunction);
  if (threads <= 0) return answer(cudaErrorInvalidValue);
  const auto known = attributes(stub);
  *blocks = 0;
  if (threads > std::min(kMostThreads, known.threads) || shared > kernel->dynamic_shared)
    return cudaSuccess;
  const int rounded = (threads + kWarp - 1) / kWarp * kWarp;
  int most = std::min(kBlocksOfMultiprocessor, kThreadsOfMultiprocessor / rounded);
  most = std::min(most, int(kSharedOfMultiprocessor / (shared + known.shared + kReservedShared)));
  if (known.registers > 0) most = std::min(most, kRegisters / (known.registers * rounded));
  *blocks = most;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                          int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}

}  // extern "C"
