#include "mixers/padded.h"

#include "ops/take/take.h"

namespace lrnn::mixers {

Padded::Padded(const Rows& x, const Context& context) : sequences_(x.batch()), length_(x.length()) {
  if (context.read_at.defined()) last_ = context.read_at.unsqueeze(1);
  if (!context.cu_seqlens.defined()) return;
  sequences_ = context.cu_seqlens.size(0) - 1;
  length_ = sequences_ > 0 ? context.lengths(x.length()).max().item<int64_t>() : 0;
  pick_ = context.last_rows(x.batch(), x.length(), length_, x.x.device());
  valid_ = pick_ >= 0;
}

Tensor Padded::back(const Tensor& y) const {
  if (only_ends()) return y.transpose(0, 1);
  if (!packed()) return y;
  // Row after row, the rectangle has the rows in their packed order.
  const Tensor at = valid_.flatten().nonzero().squeeze(1);
  return ops::take({y.flatten(0, 1)}, at)[0].unsqueeze(0);
}

}  // namespace lrnn::mixers
