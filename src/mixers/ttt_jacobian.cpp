#include "mixers/ttt_jacobian.h"

#include "ops/torch.h"

namespace lrnn::mixers {
namespace {

using torch::Tensor;

// Of G = (g - mean(g) - x mean(g x)) / root, by Z; root and x are functions of Z, and g = weight
// (k + weight x + bias - v). All [B,H,D].
Tensor slope_of_gradient(const Tensor& Z, const ops::Ttt& in, const Tensor& k, const Tensor& v) {
  const int64_t D = Z.size(-1);
  const auto outer = [](const Tensor& a, const Tensor& b) {
    return a.unsqueeze(-1) * b.unsqueeze(-2);
  };
  const Tensor centred = Z - Z.mean(-1, true),
               root = (centred.square().mean(-1, true) + in.eps).sqrt(), x = centred / root;
  const Tensor weight = in.weight.to(Z.scalar_type()), bias = in.bias.to(Z.scalar_type());
  const Tensor g = weight * (k + weight * x + bias - v), gx = (g * x).mean(-1, true);
  const Tensor G = (g - g.mean(-1, true) - x * gx) / root;
  const Tensor I = torch::eye(D, Z.options());
  const Tensor project = I - 1.0 / double(D) - outer(x, x) / double(D);  // root times dx/dZ
  const Tensor inner =
      project * weight.square().unsqueeze(-2) - gx.unsqueeze(-1) * I - outer(x, g) / double(D);
  return inner.matmul(project) / root.square().unsqueeze(-1) -
         outer(G, x) / (double(D) * root).unsqueeze(-1);
}

}  // namespace

Tensor ttt_jacobian(const ops::Ttt& in) {
  ops::Ttt step = in;
  step.q.reset(), step.read_at.reset();
  std::vector<Tensor> out;
  for (int64_t t = 0; t < in.k.size(1); ++t) {
    const auto at = [&](const Tensor& x) { return x.slice(1, t, t + 1); };
    step.k = at(in.k), step.v = at(in.v), step.eta = at(in.eta);
    const auto next = ops::ttt(step);
    // Behind the token stands what its gradient was taken at.
    const auto wide = next.W.scalar_type();
    const Tensor k = step.k.squeeze(1).to(wide), v = step.v.squeeze(1).to(wide);
    const Tensor Z = k.unsqueeze(-2).matmul(next.W.select(1, 1)).squeeze(-2) + next.b.select(1, 1);
    const Tensor size = step.eta.squeeze(1).to(wide) * (k.square().sum(-1) + 1);  // [B,H]
    out.push_back(torch::eye(Z.size(-1), Z.options()) -
                  size.unsqueeze(-1).unsqueeze(-1) * slope_of_gradient(Z, in, k, v));
    step.W = next.W, step.b = next.b, step.position = next.position;
  }
  return torch::stack(out, 1);
}

}  // namespace lrnn::mixers
