#include "ops/slstm/slstm.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
SlstmResult dense_slstm(const Slstm& in) {
  const int64_t B = in.wx.size(0), T = in.wx.size(1), H = in.wx.size(2), D = in.wx.size(4);
  const auto wide = at::promoteTypes(in.wx.scalar_type(), torch::kFloat32);
  const Tensor R = in.R.to(wide).view({H, D, 4 * D});
  Tensor state =
      in.state.defined() ? in.state : torch::zeros({B, 4, H, D}, in.wx.options().dtype(wide));
  Tensor h = state.select(1, 0).to(wide), c = state.select(1, 1).to(wide),
         n = state.select(1, 2).to(wide), m = state.select(1, 3).to(wide);
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor rh = h.unsqueeze(-2).matmul(R).view({B, H, 4, D});
    Tensor raw = in.wx.select(1, t).to(wide) + rh;
    if (in.bias.defined()) raw = raw + in.bias.to(wide);
    const Tensor i = raw.select(2, 0), f = raw.select(2, 1), z = raw.select(2, 2),
                 o = raw.select(2, 3);
    const Tensor a = torch::log_sigmoid(f) + m;
    m = torch::where((n == 0).logical_or(i >= a), i, a);
    const Tensor input = (i - m).exp().clamp_max(1), forget = (a - m).exp().clamp_max(1);
    c = forget * c + input * z.tanh();
    n = forget * n + input;
    h = o.sigmoid() * c / n;
    outputs.push_back(h.to(in.wx.scalar_type()));
  }
  return {T > 0 ? torch::stack(outputs, 1) : torch::zeros({B, 0, H, D}, in.wx.options()),
          torch::stack({h, c, n, m}, 1)};
}

}  // namespace

SlstmResult slstm_definition(const Slstm& in) { return by_sequence(in, dense_slstm); }

SlstmResult slstm(const Slstm& in) {
  if (!in.read_at.defined()) return apply_op(in, slstm_definition);
  Slstm all = in;
  all.read_at.reset();
  auto out = slstm(all);
  // The output at the end is part of the state.
  out.h = are_ends(in.read_at, in.cu_seqlens, in.wx.size(0), in.wx.size(1))
              ? out.state.select(1, 0).to(in.wx.scalar_type()).unsqueeze(0)
              : at_rows(out.h, in.read_at);
  return out;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Slstm, slstm>(m); }

}  // namespace lrnn::ops
