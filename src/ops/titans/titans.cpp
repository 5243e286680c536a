#include "ops/titans/titans.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
TitansResult titans_dense(const Titans& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), H = in.k.size(2), K = in.k.size(3),
                V = in.v.size(3);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const auto at = [&](const Tensor& x, int64_t t) { return x.select(1, t).to(wide); };
  const auto gate = [&](const Tensor& x, int64_t t) { return at(x, t).view({B, H, 1, 1}); };
  const Tensor zeros = torch::zeros({B, H, K, V}, in.k.options().dtype(wide));
  Tensor M = in.state.defined() ? in.state.to(wide) : zeros,
         S = in.momentum.defined() ? in.momentum.to(wide) : zeros;
  std::vector<Tensor> o;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor k = at(in.k, t),
                 error = k.unsqueeze(-2).matmul(M) - at(in.v, t).unsqueeze(-2);  // [B,H,1,V]
    S = gate(in.eta, t) * S - gate(in.theta, t) * k.unsqueeze(-1) * error;
    M = (1 - gate(in.alpha, t)) * M + S;
    if (in.q.defined())
      o.push_back(
          (in.scale * at(in.q, t).unsqueeze(-2).matmul(M)).squeeze(-2).to(in.v.scalar_type()));
  }
  if (!in.q.defined()) return {{}, M, S};
  return {T > 0 ? torch::stack(o, 1) : torch::zeros({B, 0, H, V}, in.v.options()), M, S};
}

}  // namespace

TitansResult titans_definition(const Titans& in) { return by_sequence(in, titans_dense); }

TitansResult titans(const Titans& in) {
  if (in.read_at.defined()) return read_recurrence(in, &Titans::q, in.scale, titans);
  return apply_op(in, titans_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Titans, titans>(m); }

}  // namespace lrnn::ops
