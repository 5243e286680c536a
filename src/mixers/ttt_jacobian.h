#pragma once
#include "ops/ttt/ttt.h"

namespace lrnn::mixers {

// What each token would do to its head's weights if its mini-batch were that token alone: the
// eigenvalues of that map are 1 but for those of a D x D matrix, I - eta (|k|^2 + 1) dG/dZ, which
// is what Z = W^T k + b of the token's own key is multiplied by. [B,T,H,D,D], at the weights with
// which the token's mini-batch began; `in` as the op gets it, not packed.
torch::Tensor ttt_jacobian(const ops::Ttt& in);

}  // namespace lrnn::mixers
