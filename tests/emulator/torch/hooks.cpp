#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <atomic>

#include "tests/emulator/torch/torch.h"

// Of c10_cuda, for the library that stands here; in no header.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*)(DeviceIndex));
}

// What LibTorch's CPU half asks the CUDA half, and the functions that others link to.
namespace lrnn::emulator {
namespace {

using at::CUDAHooksArgs;
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;

cudaPointerAttributes attributes_of(const void* memory) {
  cudaPointerAttributes attributes{};
  C10_CUDA_CHECK(cudaPointerGetAttributes(&attributes, memory));
  return attributes;
}

struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}

  void init() const override { c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count()); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  long versionCUDART() const override { return CUDART_VERSION; }
  std::string showConfig() const override { return "  - a GPU emulated on the CPU\n"; }

  int getNumGPUs() const override { return c10::cuda::device_count(); }
  c10::DeviceIndex deviceCount() const override { return c10::cuda::device_count(); }
  c10::DeviceIndex current_device() const override { return c10::cuda::current_device(); }
  c10::DeviceIndex getCurrentDevice() const override { return c10::cuda::current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { c10::cuda::set_device(device); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    return c10::cuda::ExchangeDevice(device);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return c10::cuda::MaybeExchangeDevice(device);
  }
  void deviceSynchronize(c10::DeviceIndex) const override { c10::cuda::device_synchronize(); }

  // The ops draw on the CPU, so its generator is the device's, too.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::make_generator<at::CPUGeneratorImpl>();
  }

  at::Allocator* getCUDADeviceAllocator() const override { return device_allocator(); }
  at::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void* memory) const override {
    return attributes_of(memory).type == cudaMemoryTypeHost;
  }
  at::Device getDeviceFromPtr(void* memory) const override {
    TORCH_CHECK(attributes_of(memory).type == cudaMemoryTypeDevice,
                "The specified pointer resides on host memory and is not registered with any CUDA "
                "device.");
    return {at::kCUDA, 0};
  }
};
REGISTER_CUDA_HOOKS(CUDAHooks)

[[maybe_unused]] const bool asked = [] {
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  return true;
}();

}  // namespace
}  // namespace lrnn::emulator

namespace at::cuda {

cudaDeviceProp* getDeviceProperties(c10::DeviceIndex device) {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp found;
    C10_CUDA_CHECK(cudaGetDeviceProperties(&found, 0));
    return found;
  }();
  TORCH_CHECK(device == 0, "there is one device, and not ", int(device));
  return &properties;
}
cudaDeviceProp* getCurrentDeviceProperties() {
  return getDeviceProperties(c10::cuda::current_device());
}
int warp_size() { return getCurrentDeviceProperties()->warpSize; }
bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex) { return false; }
c10::Allocator* getCUDADeviceAllocator() { return lrnn::emulator::device_allocator(); }

c10::MempoolId_t graph_pool_handle() {
  static std::atomic<c10::CaptureId_t> last = 0;
  return {0, ++last};
}

}  // namespace at::cuda
