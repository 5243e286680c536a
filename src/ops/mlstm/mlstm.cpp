#include "ops/mlstm/mlstm.h"

#include <limits>

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
MlstmResult dense_mlstm(const Mlstm& in) {
  const int64_t B = in.q.size(0), T = in.q.size(1), H = in.q.size(2), K = in.q.size(3),
                V = in.v.size(3);
  const auto wide = at::promoteTypes(in.q.scalar_type(), torch::kFloat32);
  const auto options = in.q.options().dtype(wide);
  const double scale = scale_of(in.scale, in.k);
  const bool given = in.state.C.defined();
  Tensor C = given ? in.state.C.to(wide) : torch::zeros({B, H, K, V}, options),
         n = given ? in.state.n.to(wide) : torch::zeros({B, H, K}, options),
         m = given ? in.state.m.to(wide)
                   : torch::full({B, H}, -std::numeric_limits<double>::infinity(), options);
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor q = in.q.select(1, t).to(wide), k = scale * in.k.select(1, t).to(wide),
                 v = in.v.select(1, t).to(wide), i = in.i.select(1, t).to(wide),
                 a = torch::log_sigmoid(in.f.select(1, t).to(wide)) + m;
    m = torch::where(i >= a, i, a);
    const Tensor forget = (a - m).exp().unsqueeze(-1), input = (i - m).exp().unsqueeze(-1);
    C = forget.unsqueeze(-1) * C + (input * k).unsqueeze(-1) * v.unsqueeze(-2);
    n = forget * n + input * k;
    const Tensor size = torch::maximum((n * q).sum(-1).abs(), (-m).exp()) + in.eps;
    const Tensor read = q.unsqueeze(-2).matmul(C).squeeze(-2);
    outputs.push_back((read / size.unsqueeze(-1)).to(in.q.scalar_type()));
  }
  return {T > 0 ? torch::stack(outputs, 1) : torch::zeros({B, 0, H, V}, in.q.options()), {C, n, m}};
}

}  // namespace

MlstmResult mlstm_definition(const Mlstm& in) { return by_sequence(in, dense_mlstm); }

void Mlstm::check() const {
  lrnn::check(state.C.defined() == state.n.defined() && state.C.defined() == state.m.defined(),
              "[mlstm] a state is C, n and m together");
}

MlstmResult mlstm(const Mlstm& in) {
  auto out = apply_op(in, mlstm_definition);
  if (in.read_at.defined()) out.h = at_rows(out.h, in.read_at);
  return out;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Mlstm, mlstm>(m); }

}  // namespace lrnn::ops
