#include "ops/rwkv7/rwkv7.h"

#include <torch/library.h>

#include "ops/diagonal/diagonal.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

Diagonal as_diagonal(const Rwkv7& in) {
  const Diagonal out{.q = in.r,
                     .k = in.k,
                     .v = in.v,
                     .log_decay = in.log_w,
                     .kk = in.kk,
                     .rate = in.a,
                     .state = in.state,
                     .scale = in.scale,
                     .negative = false,
                     .cu_seqlens = in.cu_seqlens};
  check(in.kk.defined() && in.a.defined(), "[rwkv7] kk and a are needed");
  check_diagonal({"rwkv7", "r", "log_w"}, out);
  return out;
}

// The function of the schema, around one of the struct of inputs.
template <Rwkv7Result (*function)(const Rwkv7&)>
std::tuple<Tensor, Tensor> rwkv7_registered(const Tensor& r, const Tensor& log_w, const Tensor& k,
                                            const Tensor& v, const Tensor& kk, const Tensor& a,
                                            const MaybeTensor& state, double scale,
                                            const MaybeTensor& cu_seqlens) {
  const auto out = function({.r = r,
                             .log_w = log_w,
                             .k = k,
                             .v = v,
                             .kk = kk,
                             .a = a,
                             .state = or_undefined(state),
                             .scale = scale,
                             .cu_seqlens = or_undefined(cu_seqlens)});
  return {out.o, out.state};
}

Rwkv7Result rwkv7_below_autograd(const Rwkv7& in) {
  auto [o, state] = diagonal_below_autograd("rwkv7", as_diagonal(in));
  return {o, state};
}

Rwkv7Result rwkv7_dense(const Rwkv7& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), H = in.k.size(2), K = in.k.size(3),
                V = in.v.size(3);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const auto at = [&](const Tensor& x, int64_t t) { return x.select(1, t).to(wide); };
  Tensor S = in.state.defined() ? in.state.to(wide)
                                : torch::zeros({B, H, K, V}, in.k.options().dtype(wide));
  std::vector<Tensor> o;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor kk = at(in.kk, t), removed = kk.unsqueeze(-2).matmul(S);  // [B,H,1,V]
    S = at(in.log_w, t).exp().unsqueeze(-1) * S - (at(in.a, t) * kk).unsqueeze(-1) * removed +
        at(in.k, t).unsqueeze(-1) * at(in.v, t).unsqueeze(-2);
    if (in.r.defined())
      o.push_back(
          (in.scale * at(in.r, t).unsqueeze(-2).matmul(S)).squeeze(-2).to(in.v.scalar_type()));
  }
  if (!in.r.defined()) return {{}, S};
  return {T > 0 ? torch::stack(o, 1) : torch::zeros({B, 0, H, V}, in.v.options()), S};
}

}  // namespace

Rwkv7Result rwkv7(const Rwkv7& in) {
  const Diagonal checked = as_diagonal(in);
  if (any_tangent(in.r, in.log_w, in.k, in.v, in.kk, in.a, in.state))
    return by_definition("rwkv7", rwkv7_definition, in, in.k);
  auto [o, state] = diagonal("rwkv7", checked);
  return {o, state};
}

Rwkv7Result rwkv7_definition(const Rwkv7& in) {
  if (!in.cu_seqlens.defined()) return rwkv7_dense(in);
  // Packed: the same thing, one sequence after the other.
  std::vector<Tensor> o, state;
  for (int64_t s = 0; s + 1 < in.cu_seqlens.size(0); ++s) {
    const int64_t begin = in.cu_seqlens[s].item<int64_t>(),
                  end = in.cu_seqlens[s + 1].item<int64_t>();
    Rwkv7 part = in;
    for (Tensor* x : {&part.r, &part.log_w, &part.k, &part.v, &part.kk, &part.a})
      if (x->defined()) *x = x->slice(1, begin, end);
    if (in.state.defined()) part.state = in.state.slice(0, s, s + 1);
    const auto out = rwkv7_dense(part);
    o.push_back(out.o), state.push_back(out.state);
  }
  return {in.r.defined() ? torch::cat(o, 1) : Tensor(), torch::cat(state, 0)};
}

TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl("rwkv7", rwkv7_registered<rwkv7_below_autograd>);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl("rwkv7", rwkv7_registered<rwkv7>); }

}  // namespace lrnn::ops
