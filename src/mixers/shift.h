#pragma once
#include "mixers/mixer.h"

namespace lrnn::mixers {

// The row before each of x [B,T,D] in its sequence: zero, or `state` [S,D], before the first.
// Leaves the last row of each sequence in `state`.
Tensor shifted(const Tensor& x, Tensor& state, const Context& context);

}  // namespace lrnn::mixers
