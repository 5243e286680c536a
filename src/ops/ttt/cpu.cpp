#include "ops/rows.h"
#include "ops/torch.h"
#include "ops/ttt/fill.h"

namespace lrnn::ops {
namespace {

struct TttCpu {
  using In = Ttt;

  static std::vector<Tensor> keep(const In& in) { return kept_weights(in); }
  static void forward(const In& in, TttResult& out, std::vector<Tensor>& kept) {
    kernels::TttForward p;
    fill(p, in);
    fill_results(p, out, kept);
    kernels::ttt_forward(p, parallel());
  }
  static void backward(const Backward<In>& b, In& grads) {
    kernels::TttBackward p;
    fill(p, b.in);
    const Tensor norm = at::empty({p.S, p.H, 2, p.D}, b.in.weight.options());
    fill_gradients(p, b, grads, norm);
    kernels::ttt_backward(p, parallel());
    const Tensor sum = add_up(norm.view({p.S, -1})).view({p.H, 2, p.D});
    grads.weight = sum.select(1, 0).contiguous(), grads.bias = sum.select(1, 1).contiguous();
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<TttCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
