#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lrnn::tasks {

// The three numbers of the papers for tasks with an answer at every position (Score::kPrefix),
// gathered sequence by sequence.
class PrefixScore {
 public:
  // right[l]: whether the answer at position l (BOS counts as one) is correct.
  template <class Flags> void add(const Flags& right) {
    int64_t length = 0, first_wrong = -1;
    for (const bool ok : right) {
      right_ += ok;
      if (!ok && first_wrong < 0) first_wrong = length;
      ++length;
    }
    positions_ += length;
    ++sequences_;
    if (length > static_cast<int64_t>(wrong_.size())) wrong_.resize(static_cast<size_t>(length));
    if (first_wrong >= 0) ++wrong_[static_cast<size_t>(first_wrong)];
  }

  int64_t sequences() const { return sequences_; }
  // Mean over all positions.
  double token_accuracy() const { return share(right_, positions_); }
  // Share of sequences that are right everywhere.
  double sequence_accuracy() const { return curve().empty() ? 0 : curve().back(); }
  // For each l the share of sequences right at positions 0 .. l; one that ends before l stays what
  // it was, so the curve never rises.
  std::vector<double> curve() const {
    std::vector<double> out;
    int64_t left = sequences_;
    for (const int64_t wrong : wrong_) out.push_back(share(left -= wrong, sequences_));
    return out;
  }

 private:
  static double share(int64_t part, int64_t whole) {
    return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  }

  int64_t right_ = 0, positions_ = 0, sequences_ = 0;
  std::vector<int64_t> wrong_;  // sequences whose first error is at l
};

}  // namespace lrnn::tasks
