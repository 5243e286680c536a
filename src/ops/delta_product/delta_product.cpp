#include "ops/delta_product/delta_product.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
DeltaProductResult dense_delta_product(const DeltaProduct& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), N = in.k.size(2), G = in.k.size(3),
                H = in.v.size(3), K = in.k.size(4), V = in.v.size(4);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const double scale = scale_of(in.scale, in.k);
  Tensor S = in.state.defined() ? in.state.to(wide)
                                : torch::zeros({B, H, K, V}, in.k.options().dtype(wide));
  const auto for_heads = [&](const Tensor& x) {  // [B,G,K] -> [B,H,K]
    return G == H ? x : x.repeat_interleave(H / G, 1);
  };
  const int64_t channels = in.gates_channels() ? K : 1;
  std::vector<Tensor> o;
  for (int64_t t = 0; t < T; ++t) {
    if (in.log_gate.defined())
      S = S * in.log_gate.select(1, t).to(wide).exp().view({B, H, channels, 1});
    for (int64_t j = 0; j < N; ++j) {
      const Tensor k = for_heads(in.k.select(1, t).select(1, j)).to(wide).unsqueeze(-1);
      const Tensor v = in.v.select(1, t).select(1, j).to(wide).unsqueeze(-2);
      const Tensor beta = in.beta.select(1, t).select(1, j).to(wide).view({B, H, 1, 1});
      S = S + beta * k.matmul(v - k.transpose(-1, -2).matmul(S));  // [B,H,K,1] times [B,H,1,V]
    }
    if (in.q.defined()) {
      const Tensor q = for_heads(in.q.select(1, t)).to(wide).unsqueeze(-2);   // [B,H,1,K]
      o.push_back((scale * q.matmul(S)).squeeze(-2).to(in.v.scalar_type()));  // [B,H,V]
    }
  }
  if (!in.q.defined()) return {{}, S};
  return {T > 0 ? torch::stack(o, 1) : torch::zeros({B, 0, H, V}, in.v.options()), S};
}

}  // namespace

DeltaProductResult delta_product_definition(const DeltaProduct& in) {
  return by_sequence(in, dense_delta_product);
}

void DeltaProduct::check() const {
  for (const auto& [name, word] : {std::pair("accuracy", accuracy), {"precision", precision}})
    lrnn::check(word.empty() || word == "fast" || word == "accurate" || word == "exact",
                "[delta_product] ", name, " must be fast, accurate or exact, got '", word, "'");
  const c10::SymInt G = k.sym_size(3), H = v.sym_size(3);
  if (G != H && (G == 0 || H == 0 || H % G != 0))
    throw Error(
        cat("[delta_product] ", H, " value heads cannot share ", G, " key heads: v is ",
            show(v.sym_sizes()), " = [B,T,N,H,V] and k ", show(k.sym_sizes()), " = [B,T,N,G,K]"),
        "H must be a multiple of G");
}

DeltaProductResult delta_product(const DeltaProduct& in) {
  if (in.read_at.defined())
    return read_recurrence(in, &DeltaProduct::q, scale_of(in.scale, in.k), delta_product);
  if (in.precision.empty()) return apply_op(in, delta_product_definition);
  TORCH_WARN_ONCE("delta_product: `precision` is called `accuracy` now");
  DeltaProduct now = in;
  if (now.accuracy.empty()) now.accuracy = in.precision;
  now.precision.clear();
  return apply_op(now, delta_product_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<DeltaProduct, delta_product>(m); }

}  // namespace lrnn::ops
