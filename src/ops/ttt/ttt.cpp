#include "ops/ttt/ttt.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// (z - mean) / sqrt(variance + eps), and that root.
std::pair<Tensor, Tensor> normalised(const Tensor& z, double eps) {
  const Tensor centred = z - z.mean(-1, true),
               root = (centred.square().mean(-1, true) + eps).sqrt();
  return {centred / root, root};
}

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
TttResult ttt_dense(const Ttt& in) {
  const int64_t B = in.k.size(0), T = in.k.size(1), H = in.k.size(2), D = in.k.size(3);
  const auto wide = at::promoteTypes(in.k.scalar_type(), torch::kFloat32);
  const auto options = in.k.options().dtype(wide);
  const auto row = [&](const Tensor& x, int64_t t) {
    return x.select(1, t).to(wide).unsqueeze(-2);  // [B,H,1,D]
  };
  const Tensor weight = in.weight.to(wide).unsqueeze(-2), bias = in.bias.to(wide).unsqueeze(-2);
  const Tensor states = in.W.defined() ? in.W.to(wide) : torch::zeros({B, 2, H, D, D}, options),
               biases = in.b.defined() ? in.b.to(wide) : torch::zeros({B, 2, H, D}, options);
  Tensor W = states.select(1, 0), b = biases.select(1, 0).unsqueeze(-2);
  Tensor W_first = states.select(1, 1), b_first = biases.select(1, 1).unsqueeze(-2);
  Tensor position =
      in.position.defined() ? in.position.detach().round() : torch::zeros({B}, options);
  std::vector<Tensor> o;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor begins = (position == 0).view({B, 1, 1, 1}), k = row(in.k, t);
    W_first = torch::where(begins, W, W_first), b_first = torch::where(begins, b, b_first);
    const auto [x, root] = normalised(k.matmul(W_first) + b_first, in.eps);
    const Tensor g = weight * (k + weight * x + bias - row(in.v, t));
    const Tensor G = (g - g.mean(-1, true) - x * (g * x).mean(-1, true)) / root;
    const Tensor step = in.eta.select(1, t).to(wide).view({B, H, 1, 1}) * G;
    W = W - k.transpose(-1, -2) * step, b = b - step;
    position = (position + 1).remainder(in.mini_batch);
    if (!in.q.defined()) continue;
    const Tensor q = row(in.q, t), y = normalised(q.matmul(W) + b, in.eps).first;
    o.push_back((q + weight * y + bias).squeeze(-2).to(in.v.scalar_type()));
  }
  TttResult out{
      {}, torch::stack({W, W_first}, 1), torch::stack({b, b_first}, 1).squeeze(-2), position};
  if (in.q.defined())
    out.o = T > 0 ? torch::stack(o, 1) : torch::zeros({B, 0, H, D}, in.v.options());
  return out;
}

// f(q; W, b) of one query per sequence, q [n,H,D], with the weights as they are now.
Tensor ttt_read(const Tensor& q, const TttResult& state, const Ttt& in) {
  const auto no_autocast = without_autocast();
  const auto wide = state.W.scalar_type();
  const Tensor x = q.to(wide);
  const Tensor z = x.unsqueeze(-2).matmul(state.W.select(1, 0)).squeeze(-2) + state.b.select(1, 0);
  return x + in.weight.to(wide) * normalised(z, in.eps).first + in.bias.to(wide);
}

}  // namespace

TttResult ttt_definition(const Ttt& in) { return by_sequence(in, ttt_dense); }

TttResult ttt(const Ttt& in) {
  if (!in.read_at.defined() || !in.q.defined()) return apply_op(in, ttt_definition);
  // At the ends of sequences the state alone runs, and is read once.
  Ttt all = in;
  all.read_at.reset();
  const int64_t B = in.k.size(0), T = in.k.size(1);
  const bool everywhere = in.q.size(0) == B && in.q.size(1) == T;
  if (!everywhere && are_ends(in.read_at, in.cu_seqlens, B, T)) {
    all.q.reset();
    TttResult out = ttt(all);
    out.o = ttt_read(in.q.flatten(0, 1), out, in).to(in.v.scalar_type()).unsqueeze(0);
    return out;
  }
  if (!everywhere) all.q = spread(in.q, in.read_at, B, T);
  TttResult out = ttt(all);
  out.o = at_rows(out.o, in.read_at);
  return out;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Ttt, ttt>(m); }

}  // namespace lrnn::ops
