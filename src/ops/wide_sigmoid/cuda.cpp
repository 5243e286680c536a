#include "kernels/cuda/rows/rows.h"
#include "ops/back_end.h"
#include "ops/cuda/stream.h"
#include "ops/torch.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"

// The CUDA kernels of wide_sigmoid.
namespace lrnn::ops::cuda {
namespace {

kernels::cuda::Sigmoid sigmoid_of(const Tensor& x, double scale) {
  return {kernel_type(x), x.numel(), scale, x.const_data_ptr()};
}

struct WideSigmoidCuda {
  using In = WideSigmoid;
  static constexpr bool kAsGiven = true;

  static void forward(const In& in, WideSigmoidResult& out, std::vector<Tensor>&) {
    const OnDevice on(in.x);
    const Tensor x = in.x.contiguous();
    kernels::cuda::sigmoid_forward(sigmoid_of(x, in.scale), out.y.data_ptr(), on.stream());
  }
  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.x);
    const Tensor x = b.in.x.contiguous(), dy = b.d.y.to(wide_type(x)).contiguous();
    kernels::cuda::sigmoid_backward(sigmoid_of(x, b.in.scale), dy.const_data_ptr(),
                                    grads.x.data_ptr(), on.stream());
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<WideSigmoidCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
