#include "kernels/cuda/ttt/ttt.h"
#include "ops/cuda/stream.h"
#include "ops/torch.h"
#include "ops/ttt/fill.h"

namespace lrnn::ops::cuda {
namespace {

struct TttCuda {
  using In = Ttt;

  static std::vector<Tensor> keep(const In& in) { return kept_weights(in); }
  static void forward(const In& in, TttResult& out, std::vector<Tensor>& kept) {
    const OnDevice on(in.k);
    kernels::TttForward p;
    fill(p, in);
    check(kernels::cuda::ttt_fits(p), "[ttt] the GPU kernels have no room for heads of ", p.D,
          " channels beside mini-batches of ", p.mini_batch, " tokens");
    fill_results(p, out, kept);
    kernels::cuda::ttt_forward(p, on.stream());
  }
  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.k);
    kernels::TttBackward p;
    fill(p, b.in);
    const Tensor norm = at::empty({p.S, p.H, 2, p.D}, b.in.weight.options()),
                 sum = at::empty({p.H, 2, p.D}, b.in.weight.options());
    fill_gradients(p, b, grads, norm);
    kernels::cuda::ttt_backward(p, on.stream());
    add_parts(norm, sum, on.stream());
    grads.weight = sum.select(1, 0).contiguous(), grads.bias = sum.select(1, 1).contiguous();
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<TttCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
