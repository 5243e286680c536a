#include "automata/algebra/monoid.h"

#include <map>
#include <numeric>
#include <set>

namespace lrnn::automata {

std::optional<std::vector<std::vector<int>>> transition_monoid(const Automaton& a, int64_t most) {
  std::vector<std::vector<int>> letters;
  for (int64_t x = 0; x < a.symbols; ++x) letters.push_back(a.letter(x));
  std::vector<int> identity(static_cast<size_t>(a.states));
  std::iota(identity.begin(), identity.end(), 0);
  std::vector<std::vector<int>> out = {identity};
  std::set<std::vector<int>> seen = {identity};
  for (size_t i = 0; i < out.size(); ++i)
    for (const auto& letter : letters) {
      auto next = out[i];
      for (int& s : next) s = letter[static_cast<size_t>(s)];
      if (!seen.insert(next).second) continue;
      if (static_cast<int64_t>(out.size()) >= most) return std::nullopt;
      out.push_back(std::move(next));
    }
  return out;
}

// States that come back to themselves form cycles; the others fall into them.
int64_t period(const std::vector<int>& f) {
  int64_t out = 1;
  std::vector<int64_t> met(f.size(), -1);
  int64_t clock = 0;
  for (size_t i = 0; i < f.size(); ++i) {
    const int64_t begin = clock;
    size_t j = i;
    for (; met[j] < 0; j = static_cast<size_t>(f[j])) met[j] = clock++;
    if (met[j] >= begin) out = std::lcm(out, clock - met[j]);
  }
  return out;
}

}  // namespace lrnn::automata
