#include "ops/cuda/gpu.h"

#include <ATen/autocast_mode.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <mutex>

#include "ops/torch.h"

// A recording shares nothing with those of other threads. at::cuda::CUDAGraph does: each enters
// itself into a set of the device's random generator and leaves it when destroyed, without a lock,
// which ends in a crash where many runs end at once. Nothing here draws random numbers; LibTorch
// refuses to do so in a recording it knows nothing of.
namespace lrnn::ops::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Before anything is recorded: libraries set themselves up at their first calls, and the allocator
// learns how much is needed.
constexpr int kRehearsals = 2;

// A recording has memory of its own. What rehearsals of a large model left idle is given back first,
// else both would have to fit; of small ones it is not worth the wait.
constexpr int64_t kWorthGivingBack = int64_t(4) << 30;
void give_back_idle() {
  const auto stats = allocator::getDeviceStats(c10::cuda::current_device());
  if (stats.reserved_bytes[0].current - stats.allocated_bytes[0].current >= kWorthGivingBack)
    allocator::emptyCache();
}

// A weight that autocast has cast before a recording would be missing from it.
class NoCastCache {
 public:
  NoCastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::clear_cache();
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~NoCastCache() { at::autocast::set_autocast_cache_enabled(before_); }

 private:
  bool before_;
};

// A share in the memory of recordings made beside each other: nobody else gets it while one of
// them lives.
class Memory {
 public:
  explicit Memory(const Memory* beside)
      : device_(c10::cuda::current_device()),
        pool_(beside ? beside->pool_ : at::cuda::graph_pool_handle()) {}
  ~Memory() {
    if (shared_) allocator::releasePool(device_, pool_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Does `work`; what it allocates on the stream, in whichever thread, comes from here.
  template <class Work> void during(cudaStream_t stream, const Work& work) {
    allocator::beginAllocateToPool(device_, pool_,
                                   [stream](cudaStream_t other) { return other == stream; });
    shared_ = true;
    struct End {
      Memory& of;
      ~End() { allocator::endAllocateToPool(of.device_, of.pool_); }
    } const end{*this};
    work();
  }

 private:
  c10::DeviceIndex device_;
  c10::MempoolId_t pool_;
  bool shared_ = false;
};

struct Destroy {
  void operator()(cudaGraph_t graph) const { C10_CUDA_CHECK_WARN(cudaGraphDestroy(graph)); }
  void operator()(cudaGraphExec_t graph) const { C10_CUDA_CHECK_WARN(cudaGraphExecDestroy(graph)); }
};
using Captured = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroy>;
using Runnable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;

// What `work` launches on the stream, instead of launching it.
Captured capture(cudaStream_t stream, const std::function<void()>& work) {
  C10_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    // Leaves the stream usable; the first error says more than this one might.
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) cudaGetLastError();
    const Captured useless(graph);
    throw;
  }
  C10_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  return Captured(graph);
}

class Graph final : public Recording {
 public:
  Graph(const std::function<void()>& work, const Graph* beside)
      : device_(c10::cuda::current_device()), memory_(beside ? &beside->memory_ : nullptr) {
    const NoCastCache every_cast_counts;
    for (int i = 0; i < kRehearsals; ++i) work();
    const auto stream = c10::cuda::getCurrentCUDAStream();
    stream.synchronize();
    // One at a time; other threads go on with theirs meanwhile.
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    give_back_idle();
    Captured captured;
    memory_.during(stream, [&] { captured = capture(stream, work); });
    size_t nodes = 0;
    C10_CUDA_CHECK(cudaGraphGetNodes(captured.get(), nullptr, &nodes));
    size_ = int64_t(nodes);
    cudaGraphExec_t runnable = nullptr;
    // The flag matters where LibTorch was told to allocate by cudaMallocAsync.
    C10_CUDA_CHECK(cudaGraphInstantiateWithFlags(&runnable, captured.get(),
                                                 cudaGraphInstantiateFlagAutoFreeOnLaunch));
    runnable_.reset(runnable);
  }
  void replay() override {
    const c10::cuda::CUDAGuard guard(device_);
    C10_CUDA_CHECK(cudaGraphLaunch(runnable_.get(), c10::cuda::getCurrentCUDAStream()));
  }
  int64_t size() const override { return size_; }

 private:
  c10::DeviceIndex device_;
  Memory memory_;  // outlives what uses it
  Runnable runnable_;
  int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Recording> record(const std::function<void()>& work, const Recording* beside) {
  return std::make_unique<Graph>(work, static_cast<const Graph*>(beside));
}

}  // namespace lrnn::ops::cuda
