#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "tests/emulator/device.h"
#include "tests/emulator/runtime/capture.h"
#include "tests/emulator/runtime/runtime.h"

// Memory of the device: that of the host, so copies are plain ones, whichever way.
namespace lrnn::emulator {
namespace {

class Lent {
 public:
  // Never destroyed: others give back as the program ends.
  static Lent& the() {
    static auto* const one = new Lent;
    return *one;
  }
  cudaError_t lend(void** memory, size_t bytes, bool host) {
    *memory = nullptr;
    if (bytes == 0) return cudaSuccess;
    const std::lock_guard lock(mutex_);
    if (bytes > total() || bytes_ > total() - bytes) return cudaErrorMemoryAllocation;
    *memory = take(bytes);
    if (!*memory) return cudaErrorMemoryAllocation;
    lent_[uintptr_t(*memory)] = {static_cast<char*>(*memory), bytes, host};
    bytes_ += bytes;
    return cudaSuccess;
  }
  cudaError_t end(void* memory, bool host) {
    if (!memory) return cudaSuccess;
    const std::lock_guard lock(mutex_);
    const auto found = lent_.find(uintptr_t(memory));
    if (found == lent_.end() || found->second.host != host) return cudaErrorInvalidValue;
    bytes_ -= found->second.bytes;
    lent_.erase(found);
    give_back(memory);
    return cudaSuccess;
  }
  void find(const void* address, const std::function<void(const Allocation&)>& work) {
    const std::lock_guard lock(mutex_);
    auto next = lent_.upper_bound(uintptr_t(address));
    if (next == lent_.begin()) return;
    const Allocation& found = (--next)->second;
    if (static_cast<const char*>(address) < found.begin + found.bytes) work(found);
  }
  static size_t total() { return size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE)); }
  size_t free() {
    const std::lock_guard lock(mutex_);
    return total() - bytes_;
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, Allocation> lent_;
  size_t bytes_ = 0;
};

// Device memory is lent with its bounds: a copy that leaves them is a fault, as it would be there.
bool fits(const void* address, size_t bytes) {
  const auto lent = allocation_of(address);
  if (!lent) return true;  // of the host
  return static_cast<const char*>(address) + bytes <= lent->begin + lent->bytes;
}

cudaError_t copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!to || !from || !fits(to, bytes) || !fits(from, bytes)) return cudaErrorInvalidValue;
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t set(void* to, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (!allocation_of(to) || !fits(to, bytes)) return cudaErrorInvalidValue;
  std::memset(to, value, bytes);
  return cudaSuccess;
}

template <class Do> cudaError_t on_stream(cudaStream_t stream, void* to, const Do& work) {
  Turn turn(stream);
  if (turn.captured()) turn.may_write(to);
  const auto error = answer(work());
  if (turn.captured() && error == cudaSuccess) record(stream, [work] { work(); });
  return error;
}

}  // namespace

void with_allocation(const void* address, const std::function<void(const Allocation&)>& work) {
  Lent::the().find(address, work);
}
std::optional<Allocation> allocation_of(const void* address) {
  std::optional<Allocation> found;
  with_allocation(address, [&](const Allocation& a) { found = a; });
  return found;
}

}  // namespace lrnn::emulator

using namespace lrnn::emulator;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return answer(Lent::the().lend(memory, bytes, false));
}
cudaError_t cudaFree(void* memory) { return answer(Lent::the().end(memory, false)); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return answer(Lent::the().lend(memory, bytes, true));
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }
cudaError_t cudaFreeHost(void* memory) { return answer(Lent::the().end(memory, true)); }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = Lent::the().free(), *total = Lent::total();
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const auto lent = allocation_of(address);
  *attributes = {};
  attributes->device = lent && !lent->host ? 0 : cudaInvalidDeviceId;
  attributes->type = !lent        ? cudaMemoryTypeUnregistered
                     : lent->host ? cudaMemoryTypeHost
                                  : cudaMemoryTypeDevice;
  attributes->hostPointer = lent && !lent->host ? nullptr : const_cast<void*>(address);
  attributes->devicePointer = lent ? const_cast<void*>(address) : nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  const Turn turn(nullptr);
  return answer(copy(to, from, bytes));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return on_stream(stream, to, [=] { return copy(to, from, bytes); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  const Turn turn(nullptr);
  return answer(set(to, value, bytes));
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return on_stream(stream, to, [=] { return set(to, value, bytes); });
}

// Pools and other processes' memory: nobody here needs them.
cudaError_t cudaMallocAsync(void**, size_t, cudaStream_t) { return answer(cudaErrorNotSupported); }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return answer(cudaErrorNotSupported); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return answer(cudaErrorNotSupported); }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaIpcCloseMemHandle(void*) { return answer(cudaErrorNotSupported); }

}  // extern "C"
