#include "ops/gated_linear_attention/gated_linear_attention.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

// Its kernels are those of the diagonal recurrence: ops/diagonal/.
namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
GatedLinearAttentionResult gla_dense(const GatedLinearAttention& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), H = in.k.size(2), K = in.k.size(3),
                V = in.v.size(3);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const auto at = [&](const Tensor& x, int64_t t) { return x.select(1, t).to(wide); };
  const double scale = scale_of(in.scale, in.k);
  Tensor S = in.state.defined() ? in.state.to(wide)
                                : torch::zeros({B, H, K, V}, in.k.options().dtype(wide));
  std::vector<Tensor> o;
  for (int64_t t = 0; t < T; ++t) {
    Tensor a = at(in.log_gate, t).exp();
    if (in.negative) a = 2 * a - 1;
    S = a.unsqueeze(-1) * S + at(in.k, t).unsqueeze(-1) * at(in.v, t).unsqueeze(-2);
    if (in.q.defined())
      o.push_back((scale * at(in.q, t).unsqueeze(-2).matmul(S)).squeeze(-2).to(in.v.scalar_type()));
  }
  if (!in.q.defined()) return {{}, S};
  return {T > 0 ? torch::stack(o, 1) : torch::zeros({B, 0, H, V}, in.v.options()), S};
}

}  // namespace

GatedLinearAttentionResult gated_linear_attention_definition(const GatedLinearAttention& in) {
  return by_sequence(in, gla_dense);
}

GatedLinearAttentionResult gated_linear_attention(const GatedLinearAttention& in) {
  if (in.read_at.defined())
    return read_recurrence(in, &GatedLinearAttention::q, scale_of(in.scale, in.k),
                           gated_linear_attention);
  return apply_op(in, gated_linear_attention_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<GatedLinearAttention, gated_linear_attention>(m); }

}  // namespace lrnn::ops
