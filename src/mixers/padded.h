#pragma once
#include "mixers/mixer.h"

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

}  // namespace lrnn::mixers
