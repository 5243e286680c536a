#include "automata/learn/sample.h"

#include <algorithm>
#include <cmath>

namespace lrnn::automata {

std::optional<size_t> Answered::parts_from(const Moore& m) const {
  int64_t s = m.automaton.start;
  for (size_t t = 0; t < word.size(); ++t) {
    s = m.automaton.step(s, word[t]);
    if (answers[t] != kNotAsked && answers[t] != m.answer[at(s)]) return t + 1;
  }
  return {};
}

Agreement agreement(int64_t length, int64_t words, int64_t equal) {
  Agreement out{length, words, equal};
  if (words == 0) return out;
  constexpr double z = 1.959963984540054;  // of the normal distribution, 2.5 % on either side
  const double n = double(words), p = double(equal) / n, zz = z * z / n;
  const double middle = p + zz / 2, half = z * std::sqrt(p * (1 - p) / n + zz / n / 4);
  out.low = equal == 0 ? 0 : (middle - half) / (1 + zz);
  out.high = equal == words ? 1 : (middle + half) / (1 + zz);
  return out;
}

std::vector<int64_t> growing_lengths(int64_t longest) {
  std::vector<int64_t> out;
  for (int64_t n = 1; n < longest; n += std::max<int64_t>(1, n / 4)) out.push_back(n);
  out.push_back(longest);
  return out;
}

}  // namespace lrnn::automata
