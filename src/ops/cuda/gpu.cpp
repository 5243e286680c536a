#include "ops/gpu.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include "base/error.h"
#include "kernels/cuda/train/adamw.h"
#include "kernels/cuda/train/losses.h"
#include "ops/cuda/gpu.h"
#include "ops/inner.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

class Cuda final : public Gpu {
 public:
  std::shared_ptr<void> own_stream() override { return cuda::own_stream(); }
  std::unique_ptr<Recording> record(const std::function<void()>& work,
                                    const Recording* beside) override {
    return cuda::record(work, beside);
  }
  void wait() override { c10::cuda::getCurrentCUDAStream().synchronize(); }
  std::string name() override { return at::cuda::getCurrentDeviceProperties()->name; }
  int64_t free_memory() override {
    size_t free = 0, total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return static_cast<int64_t>(free);
  }
  // Not by LibTorch's allocator, which takes the next power of two.
  torch::Tensor host_memory(int64_t bytes) override {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, size_t(bytes), cudaHostAllocDefault) != cudaSuccess) {
      cudaGetLastError();  // nobody else is to find it
      return {};
    }
    return torch::from_blob(
        memory, {bytes}, [](void* p) { cudaFreeHost(p); }, torch::kUInt8);
  }

  void adamw(const GpuAdamW& u, const std::vector<GpuGradient>& gradients) override {
    const c10::cuda::CUDAGuard guard(u.values.device());
    const auto stream = c10::cuda::getCurrentCUDAStream().stream();
    std::vector<kernels::cuda::GradientPiece> pieces;
    std::vector<torch::Tensor> kept;  // until the launch
    const auto flat = [&](const torch::Tensor& x, at::ScalarType type, int64_t size) {
      if (!x.defined()) return static_cast<const void*>(nullptr);
      check(x.numel() == size && x.device() == u.values.device(), "[adamw] a gradient of ",
            x.numel(), " values for ", size, " weights");
      kept.push_back(x.to(type).contiguous());
      return kept.back().const_data_ptr();
    };
    for (const auto& g : gradients)
      pieces.push_back({static_cast<const float*>(flat(g.wide, at::kFloat, g.size)),
                        static_cast<const uint16_t*>(flat(g.narrow, at::kBFloat16, g.size)),
                        g.begin, g.size, g.decays});
    const auto count = int64_t(pieces.size());
    torch::Tensor squares = u.squares;
    if (!squares.defined()) {
      squares = at::empty({kernels::cuda::gradient_sums(pieces.data(), count)}, u.report.options());
      kernels::cuda::gradient_squares(pieces.data(), count, squares.mutable_data_ptr<double>(),
                                      stream);
    }
    kernels::cuda::AdamW a{};
    a.values = u.values.mutable_data_ptr<float>();
    a.m = u.m.mutable_data_ptr<float>(), a.v = u.v.mutable_data_ptr<float>();
    a.beta1 = float(u.beta1), a.beta2 = float(u.beta2), a.eps = float(u.eps);
    a.rest1 = float(1 - u.beta1), a.rest2 = float(1 - u.beta2);
    a.settings = u.settings.const_data_ptr<double>();
    a.report = u.report.mutable_data_ptr<double>();
    a.squares = squares.const_data_ptr<double>(), a.sums = squares.numel();
    kernels::cuda::adamw(a, pieces.data(), count, stream);
  }

  void squares(const torch::Tensor& x, int64_t each, const torch::Tensor& to) override {
    check(to.is_contiguous() && to.numel() == (x.numel() + each - 1) / each, "[squares] of ",
          x.numel(), " numbers by ", each, " into ", to.numel());
    const c10::cuda::CUDAGuard guard(x.device());
    kernels::cuda::squares(x.const_data_ptr<float>(), x.numel(), each,
                           to.mutable_data_ptr<double>(),
                           c10::cuda::getCurrentCUDAStream().stream());
  }

  torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& target,
                              double smoothing, const torch::Tensor& share,
                              const torch::Tensor& report) override {
    check(logits.dim() == 2 && target.dim() == 1 && target.size(0) == logits.size(0) &&
              target.scalar_type() == at::kLong,
          "[cross_entropy] logits must be [rows,V] and targets int64 [rows], got ", logits.sizes(),
          " and ", target.scalar_type(), " ", target.sizes());
    const auto type = logits.scalar_type();
    check(type == at::kFloat || type == at::kBFloat16,
          "[cross_entropy] logits must be float32 or bfloat16, got ", type);
    const c10::cuda::CUDAGuard guard(logits.device());
    const auto x = logits.stride(1) == 1 ? logits : logits.contiguous(), y = target.contiguous();
    const auto dx = at::empty(x.sizes(), x.options());
    kernels::cuda::CrossEntropy p;
    p.type = kernel_type(x), p.rows = x.size(0), p.V = x.size(1), p.stride = x.stride(0);
    p.smoothing = float(smoothing);
    const auto partial =
        at::empty({kernels::cuda::cross_entropy_blocks(p.rows, p.V), 2}, report.options());
    p.x = x.const_data_ptr(), p.target = y.const_data_ptr<int64_t>(), p.dx = dx.data_ptr();
    p.share = share.const_data_ptr<double>(), p.report = report.mutable_data_ptr<double>();
    p.partial = partial.mutable_data_ptr<double>();
    kernels::cuda::cross_entropy(p, c10::cuda::getCurrentCUDAStream().stream());
    return dx;
  }
};

[[maybe_unused]] const bool ready = [] {
  static Cuda one;
  set_gpu(&one);
  return true;
}();

}  // namespace
}  // namespace lrnn::ops::cuda
