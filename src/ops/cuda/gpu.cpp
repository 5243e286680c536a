#include "ops/gpu.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <mutex>

#include "kernels/cuda/adamw.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

// Before anything is recorded: libraries set themselves up at their first calls, and the allocator
// learns how much is needed.
constexpr int kRehearsals = 2;

class Graph final : public Recording {
 public:
  explicit Graph(const std::function<void()>& work) {
    for (int i = 0; i < kRehearsals; ++i) work();
    c10::cuda::getCurrentCUDAStream().synchronize();
    // One at a time; other threads go on with theirs meanwhile.
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        graph_.capture_end();  // leaves the stream usable; the first error says more
      } catch (...) {
      }
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

class Cuda final : public Gpu {
 public:
  std::shared_ptr<void> own_stream() override {
    return std::make_shared<c10::cuda::CUDAStreamGuard>(c10::cuda::getStreamFromPool());
  }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return std::make_unique<Graph>(work);
  }
  void wait() override { c10::cuda::getCurrentCUDAStream().synchronize(); }
  std::string name() override { return at::cuda::getCurrentDeviceProperties()->name; }

  void adamw(const GpuAdamW& u) override {
    const c10::cuda::CUDAGuard guard(u.values.device());
    kernels::cuda::AdamW a{};
    a.n = u.values.numel();
    const auto partial = at::empty({kernels::cuda::adamw_blocks(a.n)}, u.report.options());
    a.values = u.values.mutable_data_ptr<float>(), a.grads = u.grads.const_data_ptr<float>();
    a.m = u.m.mutable_data_ptr<float>(), a.v = u.v.mutable_data_ptr<float>();
    a.decays = u.decays.const_data_ptr<bool>();
    a.beta1 = float(u.beta1), a.beta2 = float(u.beta2), a.eps = float(u.eps);
    a.rest1 = float(1 - u.beta1), a.rest2 = float(1 - u.beta2);
    a.settings = u.settings.const_data_ptr<double>();
    a.report = u.report.mutable_data_ptr<double>();
    a.partial = partial.mutable_data_ptr<double>();
    kernels::cuda::adamw(a, c10::cuda::getCurrentCUDAStream().stream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
};

[[maybe_unused]] const bool ready = [] {
  static Cuda one;
  set_gpu(&one);
  return true;
}();

}  // namespace
}  // namespace lrnn::ops::cuda
