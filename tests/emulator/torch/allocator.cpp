#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "tests/emulator/torch/torch.h"

// LibTorch's allocator for the device. LibTorch's own cuts tensors out of large blocks; here each
// has an allocation of its own, so that a kernel that leaves its tensor is caught. Tests that look
// at what lies between the blocks ask for LibTorch's: LRNN_EMULATOR_ALLOCATOR=libtorch.
namespace lrnn::emulator {
namespace {

using namespace c10::CachingDeviceAllocator;
using c10::cuda::CUDACachingAllocator::AllocatorState;
using c10::cuda::CUDACachingAllocator::CheckpointDelta;
using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using c10::cuda::CUDACachingAllocator::OutOfMemoryObserver;
using c10::cuda::CUDACachingAllocator::ShareableHandle;
using c10::cuda::CUDACachingAllocator::SnapshotInfo;
using c10::cuda::CUDACachingAllocator::StreamSegmentSize;

[[noreturn]] void no(const char* what) {
  C10_THROW_ERROR(NotImplementedError, std::string("the emulator's allocator has no ") + what);
}

// Memory of recordings: what is given back stays with the pool, for whom a replay writes there.
struct Pool {
  int users = 0;
  std::function<bool(cudaStream_t)> wants;  // while work allocates to it
  std::multimap<size_t, void*> idle;
};

class Allocator final : public CUDAAllocator {
 public:
  // ------------------------------------------------------------------------------------- memory
  void* raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override {
    if (bytes == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    Block block{bytes, std::nullopt};
    for (const auto& [id, pool] : pools_)
      if (pool.wants && pool.wants(stream)) block.pool = id;
    void* memory = nullptr;
    if (block.pool) {
      auto& idle = pools_[*block.pool].idle;
      if (const auto found = idle.find(bytes); found != idle.end()) {
        memory = found->second;
        idle.erase(found);
      }
    }
    if (!memory) {
      if (cudaMalloc(&memory, bytes) != cudaSuccess) {
        cudaGetLastError();  // nobody else is to find it
        TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory: ", bytes, " bytes");
      }
      for (const auto i : kKinds) stats_.reserved_bytes[i].increase(bytes);
    }
    blocks_[memory] = block;
    for (const auto i : kKinds) {
      stats_.allocation[i].increase(1);
      stats_.allocated_bytes[i].increase(bytes), stats_.active_bytes[i].increase(bytes);
      stats_.requested_bytes[i].increase(bytes);
    }
    return memory;
  }
  void raw_delete(void* memory) override {
    if (!memory) return;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory);
    TORCH_CHECK(found != blocks_.end(), "this memory was not lent, or is given back twice");
    const Block block = found->second;
    blocks_.erase(found);
    for (const auto i : kKinds) {
      stats_.allocation[i].decrease(1);
      stats_.allocated_bytes[i].decrease(block.bytes), stats_.active_bytes[i].decrease(block.bytes);
      stats_.requested_bytes[i].decrease(block.bytes);
    }
    const auto pool = block.pool ? pools_.find(*block.pool) : pools_.end();
    if (pool != pools_.end())
      pool->second.idle.emplace(block.bytes, memory);
    else
      free(memory, block.bytes);
  }
  void* raw_alloc(size_t bytes) override {
    return raw_alloc_with_stream(bytes, c10::cuda::getCurrentCUDAStream());
  }
  c10::DataPtr allocate(size_t bytes) override {
    void* const memory = raw_alloc(bytes);
    return {memory, memory, raw_deleter(), {c10::kCUDA, 0}};
  }
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, size_t bytes) const override {
    C10_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                   c10::cuda::getCurrentCUDAStream()));
  }
  // Work is done when it was asked for: no stream still uses memory that is given back.
  void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) override {}
  void emptyCache(c10::MempoolId_t) override {}
  cudaError_t memcpyAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream,
                          bool) override {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
  }
  void* getBaseAllocation(void* memory, size_t* bytes) override {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory);
    TORCH_CHECK(found != blocks_.end(), "this memory was not lent");
    if (bytes) *bytes = found->second.bytes;
    return memory;
  }

  // -------------------------------------------------------------------------------------- pools
  void beginAllocateToPool(c10::DeviceIndex, c10::MempoolId_t id,
                           std::function<bool(cudaStream_t)> wants) override {
    const std::lock_guard lock(mutex_);
    auto& pool = pools_[id];
    ++pool.users;
    pool.wants = std::move(wants);
  }
  void endAllocateToPool(c10::DeviceIndex, c10::MempoolId_t id) override {
    const std::lock_guard lock(mutex_);
    if (const auto found = pools_.find(id); found != pools_.end()) found->second.wants = nullptr;
  }
  void releasePool(c10::DeviceIndex, c10::MempoolId_t id) override {
    const std::lock_guard lock(mutex_);
    const auto found = pools_.find(id);
    if (found == pools_.end() || --found->second.users > 0) return;
    for (const auto& [bytes, memory] : found->second.idle) free(memory, bytes);
    pools_.erase(found);
  }

  // ------------------------------------------------------------------------------------- reports
  DeviceStats getDeviceStats(c10::DeviceIndex) override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    each_stat([](c10::CachingAllocator::Stat& stat) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex) override {
    each_stat([](c10::CachingAllocator::Stat& stat) { stat.reset_peak(); });
  }
  std::string name() override { return "emulator"; }
  void init(int) override {}
  bool initialized() override { return true; }
  bool isEnabled() const override { return true; }

  // --------------------------------------------------------------------- what nobody asks it for
  void enable(bool) override { no("way to be switched off"); }
  double getMemoryFraction(c10::DeviceIndex) override { no("memory fractions"); }
  void setMemoryFraction(double, c10::DeviceIndex) override { no("memory fractions"); }
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex) override {
    no("segments");
  }
  void cacheInfo(c10::DeviceIndex, size_t*) override { no("cache"); }
  SnapshotInfo snapshot(c10::MempoolId_t, bool) override { no("snapshots"); }
  ShareableHandle shareIpcHandle(void*) override { no("shared memory"); }
  std::shared_ptr<void> getIpcDevPtr(std::string) override { no("shared memory"); }
  void recordHistory(bool, CreateContextFn, size_t, RecordContext, bool,
                     const std::vector<std::string>&) override {
    no("history");
  }
  void attachOutOfMemoryObserver(OutOfMemoryObserver) override { no("observers"); }
  void attachAllocatorTraceTracker(AllocatorTraceTracker) override { no("trackers"); }
  void enablePeerAccess(c10::DeviceIndex, c10::DeviceIndex) override { no("second device"); }
  std::shared_ptr<AllocatorState> getCheckpointState(c10::DeviceIndex, c10::MempoolId_t) override {
    no("checkpoints");
  }
  CheckpointDelta setCheckpointPoolState(c10::DeviceIndex,
                                         std::shared_ptr<AllocatorState>) override {
    no("checkpoints");
  }

 private:
  struct Block {
    size_t bytes = 0;
    std::optional<c10::MempoolId_t> pool;
  };
  // Statistics are kept by the size of blocks, too; here all count as small ones.
  static constexpr int kKinds[] = {0, 1};

  void free(void* memory, size_t bytes) {
    C10_CUDA_CHECK_WARN(cudaFree(memory));
    for (const auto i : kKinds) stats_.reserved_bytes[i].decrease(bytes);
  }
  template <class Do> void each_stat(const Do& work) {
    const std::lock_guard lock(mutex_);
    for (const auto i : kKinds) {
      work(stats_.allocation[i]);
      work(stats_.allocated_bytes[i]), work(stats_.reserved_bytes[i]);
      work(stats_.active_bytes[i]), work(stats_.requested_bytes[i]);
    }
  }

  std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
  std::map<c10::MempoolId_t, Pool> pools_;
  DeviceStats stats_;
};

Allocator& the_allocator() {
  static auto* const one = new Allocator;  // never destroyed: tensors may outlive main
  return *one;
}

c10::DeleterFnPtr Allocator::raw_deleter() const {
  return [](void* memory) { the_allocator().raw_delete(memory); };
}

// Memory of the host that cudaHostAlloc lends.
class Pinned final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* memory = nullptr;
    C10_CUDA_CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    return {memory, memory, raw_deleter(), c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return [](void* memory) { C10_CUDA_CHECK_WARN(cudaFreeHost(memory)); };
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

// What it is asked for, by name, before anything is allocated.
bool libtorchs() {
  static const bool asked = [] {
    const char* const name = std::getenv("LRNN_EMULATOR_ALLOCATOR");
    return name && std::string_view(name) == "libtorch";
  }();
  return asked;
}

[[maybe_unused]] const bool ready = [] {
  if (libtorchs()) return false;
  // c10_cuda has put its own there as it was loaded, before us: we link to it.
  c10::cuda::CUDACachingAllocator::allocator.store(&the_allocator());
  c10::SetAllocator(c10::kCUDA, &the_allocator(), 1);
  return true;
}();

}  // namespace

c10::Allocator* device_allocator() {
  if (libtorchs()) return c10::cuda::CUDACachingAllocator::get();
  return &the_allocator();
}
c10::Allocator* pinned_allocator() {
  static auto* const one = new Pinned;
  return one;
}

}  // namespace lrnn::emulator
