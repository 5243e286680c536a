#pragma once
#include <chrono>

#include "automata/learn/oracle.h"

namespace lrnn::automata {

// Thrown by a metered oracle when nothing is left.
struct Spent {
  enum What { kWords, kSeconds } what;
};

// An oracle with its costs: counts the words and ends when there were too many, or too much time
// has passed.
class Metered final : public Oracle {
 public:
  Metered(Oracle& oracle, int64_t words, double seconds)
      : oracle_(oracle), words_(words), seconds_(seconds) {}

  int64_t symbols() const override { return oracle_.symbols(); }
  int64_t empty() const override { return oracle_.empty(); }
  std::vector<int64_t> last(const std::vector<Question>& questions) override;
  std::vector<std::vector<int64_t>> every(const std::vector<Word>& words) override;

  // From here on this part of the budget may be used up, 0 .. 1.
  void allow(double part) { part_ = part; }
  int64_t asked() const { return asked_; }
  double elapsed() const;

 private:
  void require() const;  // that something is left
  // Pieces of this many letters are asked at a time, and the clock is read between them.
  static constexpr size_t kPiece = 32768;

  Oracle& oracle_;
  int64_t words_, asked_ = 0;
  double seconds_, part_ = 1;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace lrnn::automata
