#include "mixers/mixer.h"
#include "ops/take/take.h"

namespace lrnn::mixers {

Tensor Rows::rows(const Tensor& pick) const {
  if (!token.defined() && !pick.defined()) return x;
  if (!token.defined()) return ops::take({x.flatten(0, 1)}, pick)[0];
  if (!pick.defined()) return ops::take({x}, token)[0];
  const Tensor at = pick.to(token.device());
  const Tensor picked = ops::take({token.flatten()}, at)[0];
  return ops::take({x}, picked.masked_fill(at < 0, -1))[0];
}

Tensor Rows::through(const Linear& linear, const Tensor& pick) const {
  // A table is multiplied first and looked up afterwards: vocabulary products instead of B*T.
  if (token.defined()) return Rows{linear.forward(x), token}.rows(pick);
  return linear.forward(rows(pick));
}

}  // namespace lrnn::mixers
