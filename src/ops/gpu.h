#pragma once
#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

// What liblrnn_cuda.so brings beside kernels. Everything else is compiled without CUDA and asks
// here; loading the library makes it available.
namespace lrnn::ops {

// Work on the GPU that was recorded once (a CUDA graph): replaying it is one launch, however many
// kernels it has. It reads and writes the memory it was recorded with.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
  virtual int64_t size() const = 0;  // kernels and copies
};

// One update of AdamW over flat float32 buffers, all on the GPU: nobody waits for the gradient's
// norm. Nothing but the report changes when the loss or the norm is not finite.
struct GpuAdamW {
  torch::Tensor values, m, v;  // float32 [n]
  double beta1 = 0, beta2 = 0, eps = 0;
  // What changes from update to update, float64 [kSettings] on the GPU.
  enum Setting { kRate, kRoot, kKeep, kClip, kShare, kActive, kSettings };
  torch::Tensor settings;
  // What it did, float64 [kReports]: the caller adds up loss and right before.
  enum Report { kLoss, kRight, kNorm, kApplied, kReports };
  torch::Tensor report;
  // Float64: sums of squares whose sum is the square of the norm. Undefined: they are made of the
  // gradients given, which are not all there are where several processes update a slice each.
  torch::Tensor squares = {};
};

// The gradient of values begin .. begin+size-1 of the flat buffers, where backward left it: the sum
// of a float32 and a bfloat16 tensor, either of which may be undefined; and whether weight decay
// acts on them.
struct GpuGradient {
  torch::Tensor wide, narrow;
  int64_t begin = 0, size = 0;
  bool decays = false;
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  // While the result lives, this thread's work goes to a stream of its own, as recording needs and
  // as runs that share a GPU want.
  virtual std::shared_ptr<void> own_stream() = 0;
  // Runs `work` to make everything ready, then records it. It must not wait for the GPU. Recordings
  // made `beside` another share its memory: what one leaves must be read before the other is
  // replayed.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& work,
                                            const Recording* beside = nullptr) = 0;
  virtual void wait() = 0;  // until this thread's stream has nothing left to do
  // Makes the update of all values that have a gradient among these.
  virtual void adamw(const GpuAdamW& update, const std::vector<GpuGradient>& gradients) = 0;
  // The sum of the squares of every `each` numbers of x, float32 [n], into `to`, float64
  // [n / each, rounded up].
  virtual void squares(const torch::Tensor& x, int64_t each, const torch::Tensor& to) = 0;
  // The gradient of share * the sum of the cross-entropies of logits [rows,V] at the targets int64
  // [rows] (-1: none), of which `smoothing` is spread over all V. That loss and the rows whose
  // argmax is the target are added to report[kLoss] and report[kRight]. share and report: float64
  // on the GPU.
  virtual torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& target,
                                      double smoothing, const torch::Tensor& share,
                                      const torch::Tensor& report) = 0;
  virtual std::string name() = 0;     // of the device
  virtual int64_t free_memory() = 0;  // bytes of it that nobody has taken
  // Bytes of the host that copies to and from the device reach at full speed; getting them takes a
  // while. Nothing when there are not so many.
  virtual torch::Tensor host_memory(int64_t bytes) = 0;
};

// The loaded one, or null.
Gpu* gpu();
// Loads liblrnn_cuda.so, which lies beside this library; why it cannot be, or nothing.
std::string load_gpu();
void set_gpu(Gpu* gpu);  // it lives as long as the program

}  // namespace lrnn::ops
