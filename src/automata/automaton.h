#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::automata {

// A complete deterministic automaton: reading symbol a in state s leads to next[s * symbols + a].
struct Automaton {
  int64_t states = 0, symbols = 0;
  std::vector<int32_t> next;
  int64_t start = 0;
  std::vector<std::string> state_names, symbol_names;  // one each, or empty: the numbers serve

  template <class Step> static Automaton from(int64_t states, int64_t symbols, Step step) {
    Automaton a{states, symbols, {}, 0, {}, {}};
    a.next.reserve(static_cast<size_t>(states * symbols));
    for (int64_t s = 0; s < states; ++s)
      for (int64_t x = 0; x < symbols; ++x) a.next.push_back(static_cast<int32_t>(step(s, x)));
    a.check();
    return a;
  }

  int64_t step(int64_t s, int64_t x) const { return next[static_cast<size_t>(s * symbols + x)]; }
  int64_t read(const std::vector<int64_t>& word) const;  // the state after the word, from `start`

  std::string state_name(int64_t s) const;
  std::string symbol_name(int64_t x) const;

  // Throws when the table is not complete or leads out of the states.
  void check() const;
};

}  // namespace lrnn::automata
