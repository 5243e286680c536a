#pragma once
#include "mixers/mixer.h"
#include "ops/take/take.h"

namespace lrnn::mixers {

// Sequences side by side, for mixers that are written for a batch of one length: the rows of packed
// sequences in a rectangle, aligned at their ends, with rows of zeros before the shorter ones.
class Padded {
 public:
  Padded(const Rows& x, const Context& context);

  int64_t sequences() const { return sequences_; }
  int64_t length() const { return length_; }
  bool packed() const { return pick_.defined(); }
  const Tensor& pick() const { return pick_; }  // for Rows: int64 [S,T] where packed, or undefined
  bool only_ends() const { return last_.defined(); }  // the last column is enough
  Tensor pick_last() const { return last_; }          // int64 [S,1], where it is
  Tensor valid() const { return valid_; }             // bool [S,T] where packed, or undefined
  // y [S,T,..] -> as x lies: [B,T,..] or [1,total,..]; the last column [S,1,..], where that is
  // enough, -> [1,S,..]
  Tensor back(const Tensor& y) const;

 private:
  int64_t sequences_, length_;
  Tensor pick_, last_, valid_;
};

inline Padded::Padded(const Rows& x, const Context& context)
    : sequences_(x.batch()), length_(x.length()) {
  if (context.read_at.defined()) last_ = context.read_at.unsqueeze(1);
  if (!context.cu_seqlens.defined()) return;
  sequences_ = context.cu_seqlens.size(0) - 1;
  length_ = sequences_ > 0 ? context.lengths(x.length()).max().item<int64_t>() : 0;
  pick_ = context.last_rows(x.batch(), x.length(), length_, x.x.device());
  valid_ = pick_ >= 0;
}

inline Tensor Padded::back(const Tensor& y) const {
  if (only_ends()) return y.transpose(0, 1);
  if (!packed()) return y;
  // Row after row, the rectangle has the rows in their packed order.
  const Tensor at = valid_.flatten().nonzero().squeeze(1);
  return ops::take({y.flatten(0, 1)}, at)[0].unsqueeze(0);
}

}  // namespace lrnn::mixers
