#pragma once
#include "ops/torch.h"

namespace lrnn::mixers {

// What a step of the sLSTM cell (ops/slstm/slstm.h) does to a small change of its state, head by
// head. m only keeps numbers in range, so the state is what matters of it, three numbers per unit:
// the output h, the memory u = c / n, and l = log n + m, how much the memory weighs:
//
//   p  = sigmoid(i - log sigmoid(f) - l)       l' = log(e^i + sigmoid(f) e^l)
//   u' = (1 - p) u + p tanh(z)                 h' = sigmoid(o) u'
//
// gates [B,T,H,4,D] are i, f, z, o before their functions, R [H,D,4,D] as in ops/slstm/slstm.h,
// states [B,T,4,H,D] the (h, c, n, m) before each step. The result is [B,T,H,3D,3D]: rows are the
// new (h, u, l), columns the old.
torch::Tensor slstm_jacobian(const torch::Tensor& gates, const torch::Tensor& R,
                             const torch::Tensor& states);

}  // namespace lrnn::mixers
