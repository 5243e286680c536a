#pragma once
#include <functional>
#include <optional>

#include "automata/learn/moore.h"

namespace lrnn::automata {

// A word of that many letters, the one with that number; empty where there is none.
using Draw = std::function<Word(int64_t length, uint64_t number)>;

// A word with its answer after every letter; kNotAsked where it is not known.
struct Answered {
  static constexpr int64_t kNotAsked = -2;
  Word word;
  std::vector<int64_t> answers;

  // The letters up to the first answer that is not m's; nothing when all agree.
  std::optional<size_t> parts_from(const Moore& m) const;
};

// How many words of a length are answered alike throughout, and where the share of all such words
// lies: Wilson's interval, which covers it 95 times in 100.
struct Agreement {
  int64_t length = 0, words = 0, equal = 0;
  double low = 0, high = 1;
};
Agreement agreement(int64_t length, int64_t words, int64_t equal);

// 1, 2, 3, … and then a fourth more each time, up to and with the longest.
std::vector<int64_t> growing_lengths(int64_t longest);

}  // namespace lrnn::automata
