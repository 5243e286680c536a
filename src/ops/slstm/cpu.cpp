#include "ops/rows.h"
#include "ops/slstm/fill.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

struct SlstmCpu {
  using In = Slstm;

  static std::vector<Tensor> keep(const In& in) { return kept_steps(in); }
  static void forward(const In& in, SlstmResult& out, std::vector<Tensor>& kept) {
    kernels::SlstmForward p;
    fill(p, in);
    fill_results(p, out, kept);
    kernels::slstm_forward(p, parallel());
  }
  static void backward(const Backward<In>& b, In& grads) {
    kernels::SlstmBackward p;
    fill(p, b.in);
    fill_gradients(p, b, grads);
    const auto wide = b.in.R.options();
    const int64_t groups = kernels::slstm_groups(p.S);
    const Tensor dR = at::empty({groups, p.H, p.D, 4, p.D}, wide),
                 dbias = at::empty({p.bias ? groups : 0, p.H, 4, p.D}, wide);
    p.dwx = gate_rows(grads.wx), p.dR = dR.data_ptr();
    if (p.bias) p.dbias = dbias.data_ptr();
    kernels::slstm_backward(p, parallel());
    grads.R = add_up(dR.view({groups, -1})).view(b.in.R.sizes());
    if (p.bias) grads.bias = add_up(dbias.view({groups, -1})).view(b.in.bias.sizes());
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<SlstmCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
