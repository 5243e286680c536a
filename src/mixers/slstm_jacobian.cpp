#include "mixers/slstm_jacobian.h"

namespace lrnn::mixers {

using torch::Tensor;

Tensor slstm_jacobian(const Tensor& gates, const Tensor& R, const Tensor& states) {
  enum { kI, kF, kZ, kO };
  const Tensor c = states.select(2, 1), n = states.select(2, 2), m = states.select(2, 3);
  const Tensor u = torch::where(n == 0, torch::zeros_like(c), c / n), l = n.log() + m;
  const Tensor i = gates.select(3, kI), f = gates.select(3, kF), z = gates.select(3, kZ).tanh(),
               o = gates.select(3, kO).sigmoid();
  const Tensor p = (i - torch::log_sigmoid(f) - l).sigmoid(), keep = 1 - p;
  const Tensor next = keep * u + p * z;
  const Tensor to_p = (z - u) * p * keep;  // du'/d(what p is the sigmoid of)
  const Tensor to_f = torch::sigmoid(-f);  // d log sigmoid(f) / df
  // How the old outputs act through one gate, whose effect on each unit is `slope` [B,T,H,D].
  const auto through = [&](const Tensor& slope, int64_t gate) {
    return slope.unsqueeze(-1) * R.select(2, gate).transpose(-1, -2);
  };
  const Tensor u_h = through(p * (1 - z * z), kZ) + through(to_p, kI) - through(to_p * to_f, kF);
  const Tensor h_h = o.unsqueeze(-1) * u_h + through(next * o * (1 - o), kO);
  const Tensor l_h = through(p, kI) + through(keep * to_f, kF);
  const Tensor none = torch::zeros_like(u_h);
  return torch::cat({torch::cat({h_h, (o * keep).diag_embed(), (-o * to_p).diag_embed()}, -1),
                     torch::cat({u_h, keep.diag_embed(), (-to_p).diag_embed()}, -1),
                     torch::cat({l_h, none, keep.diag_embed()}, -1)},
                    -2);
}

}  // namespace lrnn::mixers
