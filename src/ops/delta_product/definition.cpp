#include <cmath>

#include "ops/delta_product/delta_product.h"
#include "ops/torch.h"

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing here is ever optimised.
namespace lrnn::ops {
namespace {

using torch::Tensor;

DeltaProductResult dense(const DeltaProduct& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), N = in.k.size(2), H = in.k.size(3),
                K = in.k.size(4), V = in.v.size(4);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const double scale = in.scale.value_or(1 / std::sqrt(double(K)));
  Tensor S = in.state.defined() ? in.state.to(wide)
                                : torch::zeros({B, H, K, V}, in.k.options().dtype(wide));
  std::vector<Tensor> o;
  for (int64_t t = 0; t < T; ++t) {
    if (in.log_gate.defined()) S = S * in.log_gate.select(1, t).to(wide).exp().view({B, H, 1, 1});
    for (int64_t j = 0; j < N; ++j) {
      const Tensor k = in.k.select(1, t).select(1, j).to(wide).unsqueeze(-1);  // [B,H,K,1]
      const Tensor v = in.v.select(1, t).select(1, j).to(wide).unsqueeze(-2);  // [B,H,1,V]
      const Tensor beta = in.beta.select(1, t).select(1, j).to(wide).view({B, H, 1, 1});
      S = S + beta * k.matmul(v - k.transpose(-1, -2).matmul(S));
    }
    if (in.q.defined()) {
      const Tensor q = in.q.select(1, t).to(wide).unsqueeze(-2);              // [B,H,1,K]
      o.push_back((scale * q.matmul(S)).squeeze(-2).to(in.v.scalar_type()));  // [B,H,V]
    }
  }
  if (!in.q.defined()) return {{}, S};
  return {T > 0 ? torch::stack(o, 1) : torch::zeros({B, 0, H, V}, in.v.options()), S};
}

}  // namespace

DeltaProductResult delta_product_definition(const DeltaProduct& in) {
  if (!in.cu_seqlens.defined()) return dense(in);
  // Packed: the same thing, one sequence after the other.
  std::vector<Tensor> o, state;
  for (int64_t s = 0; s + 1 < in.cu_seqlens.size(0); ++s) {
    const int64_t begin = in.cu_seqlens[s].item<int64_t>(),
                  end = in.cu_seqlens[s + 1].item<int64_t>();
    auto part = [&](const Tensor& x) { return x.defined() ? x.slice(1, begin, end) : x; };
    const auto out = dense({.q = part(in.q),
                            .k = part(in.k),
                            .v = part(in.v),
                            .beta = part(in.beta),
                            .log_gate = part(in.log_gate),
                            .state = in.state.defined() ? in.state.slice(0, s, s + 1) : in.state,
                            .scale = in.scale,
                            .cu_seqlens = {}});
    o.push_back(out.o), state.push_back(out.state);
  }
  return {in.q.defined() ? torch::cat(o, 1) : Tensor(), torch::cat(state, 0)};
}

}  // namespace lrnn::ops
