#pragma once
#include <torch/types.h>

#include <functional>
#include <memory>

// What liblrnn_cuda.so brings beside kernels. Everything else is compiled without CUDA and asks
// here; loading the library makes it available.
namespace lrnn::ops {

// Work on the GPU that was recorded once (a CUDA graph): replaying it is one launch, however many
// kernels it has. It reads and writes the memory it was recorded with.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

// One update of AdamW over flat float32 buffers, all on the GPU: nobody waits for the gradient's
// norm. Nothing but the report changes when the loss or the norm is not finite.
struct GpuAdamW {
  torch::Tensor values, grads, m, v;  // float32 [n]
  torch::Tensor decays;               // bool [n]: where weight decay acts
  double beta1 = 0, beta2 = 0, eps = 0;
  // What changes from update to update, float64 [kSettings] on the GPU.
  enum Setting { kRate, kRoot, kKeep, kClip, kShare, kActive, kSettings };
  torch::Tensor settings;
  // What it did, float64 [kReports]: the caller adds up loss and right before.
  enum Report { kLoss, kRight, kNorm, kApplied, kReports };
  torch::Tensor report;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  // While the result lives, this thread's work goes to a stream of its own, as recording needs and
  // as runs that share a GPU want.
  virtual std::shared_ptr<void> own_stream() = 0;
  // Runs `work` to make everything ready, then records it. It must not wait for the GPU.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work) = 0;
  virtual void wait() = 0;  // until this thread's stream has nothing left to do
  virtual void adamw(const GpuAdamW& update) = 0;
  virtual std::string name() = 0;  // of the device
};

// The loaded one, or null.
Gpu* gpu();
void set_gpu(Gpu* gpu);  // it lives as long as the program

}  // namespace lrnn::ops
