#include "ops/rwkv7/rwkv7.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

// Its kernels are those of the diagonal recurrence: ops/diagonal/.
namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
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

Rwkv7Result rwkv7_definition(const Rwkv7& in) { return by_sequence(in, rwkv7_dense); }

Rwkv7Result rwkv7(const Rwkv7& in) {
  if (in.read_at.defined()) return read_recurrence(in, &Rwkv7::r, in.scale, rwkv7);
  return apply_op(in, rwkv7_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Rwkv7, rwkv7>(m); }

}  // namespace lrnn::ops
