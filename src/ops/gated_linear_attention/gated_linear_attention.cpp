#include "ops/gated_linear_attention/gated_linear_attention.h"

#include <torch/library.h>

#include <cmath>

#include "ops/diagonal/diagonal.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

constexpr const char* kGla = "gated_linear_attention";

Diagonal as_diagonal(const GatedLinearAttention& in) {
  Diagonal out{.q = in.q,
               .k = in.k,
               .v = in.v,
               .log_decay = in.log_gate,
               .kk = {},
               .rate = {},
               .state = in.state,
               .scale = 1,
               .negative = in.negative,
               .cu_seqlens = in.cu_seqlens};
  check_diagonal({kGla, "q", "log_gate"}, out);
  out.scale =
      in.scale.value_or(1 / std::sqrt(double(in.k.sym_size(3).guard_int(__FILE__, __LINE__))));
  return out;
}

// The function of the schema, around one of the struct of inputs.
template <GatedLinearAttentionResult (*function)(const GatedLinearAttention&)>
std::tuple<Tensor, Tensor> gla_registered(const Tensor& q, const Tensor& k, const Tensor& v,
                                          const Tensor& log_gate, const MaybeTensor& state,
                                          std::optional<double> scale, bool negative,
                                          const MaybeTensor& cu_seqlens) {
  const auto out = function({.q = q,
                             .k = k,
                             .v = v,
                             .log_gate = log_gate,
                             .state = or_undefined(state),
                             .scale = scale,
                             .negative = negative,
                             .cu_seqlens = or_undefined(cu_seqlens)});
  return {out.o, out.state};
}

GatedLinearAttentionResult gla_below_autograd(const GatedLinearAttention& in) {
  auto [o, state] = diagonal_below_autograd(kGla, as_diagonal(in));
  return {o, state};
}

GatedLinearAttentionResult gla_dense(const GatedLinearAttention& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), H = in.k.size(2), K = in.k.size(3),
                V = in.v.size(3);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const auto at = [&](const Tensor& x, int64_t t) { return x.select(1, t).to(wide); };
  const double scale = in.scale.value_or(1 / std::sqrt(double(K)));
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

GatedLinearAttentionResult gated_linear_attention(const GatedLinearAttention& in) {
  const Diagonal checked = as_diagonal(in);
  if (any_tangent(in.q, in.k, in.v, in.log_gate, in.state))
    return by_definition(kGla, gated_linear_attention_definition, in, in.k);
  auto [o, state] = diagonal(kGla, checked);
  return {o, state};
}

GatedLinearAttentionResult gated_linear_attention_definition(const GatedLinearAttention& in) {
  if (!in.cu_seqlens.defined()) return gla_dense(in);
  // Packed: the same thing, one sequence after the other.
  std::vector<Tensor> o, state;
  for (int64_t s = 0; s + 1 < in.cu_seqlens.size(0); ++s) {
    const int64_t begin = in.cu_seqlens[s].item<int64_t>(),
                  end = in.cu_seqlens[s + 1].item<int64_t>();
    GatedLinearAttention part = in;
    for (Tensor* x : {&part.q, &part.k, &part.v, &part.log_gate})
      if (x->defined()) *x = x->slice(1, begin, end);
    if (in.state.defined()) part.state = in.state.slice(0, s, s + 1);
    const auto out = gla_dense(part);
    o.push_back(out.o), state.push_back(out.state);
  }
  return {in.q.defined() ? torch::cat(o, 1) : Tensor(), torch::cat(state, 0)};
}

TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl(kGla, gla_registered<gla_below_autograd>);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl(kGla, gla_registered<gated_linear_attention>); }

}  // namespace lrnn::ops
