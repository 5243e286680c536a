#pragma once
#include <cstdint>
#include <vector>

#include "automata/automaton.h"

namespace lrnn::automata {

// How much a regular expression may cost; hostile ones end in an error instead of in swap.
struct Budget {
  static constexpr int64_t kMostNfaStates = 100000;
  static constexpr int64_t kMostStates = 10000;  // of any deterministic automaton on the way
  int64_t steps = 20000000;                      // visits of states, altogether

  void spend(int64_t count);  // throws when nothing is left
};

// A nondeterministic automaton made of fragments with one way in and one way out.
class Nfa {
 public:
  struct Fragment {
    int64_t in, out;
  };

  explicit Nfa(int64_t symbols) : symbols_(symbols) {}

  Fragment empty_word();
  Fragment one_of(std::vector<int32_t> symbols);  // none: matches nothing
  Fragment then(Fragment a, Fragment b);
  Fragment either(const std::vector<Fragment>& all);
  Fragment optional(Fragment a);
  Fragment repeated(Fragment a);  // at least once
  Fragment embed(const Automaton& a);

  // The smallest automaton of the words that lead from in to out.
  Automaton determinise(Fragment whole, Budget& budget) const;

 private:
  struct State {
    std::vector<int64_t> free;                      // reached without reading
    std::vector<std::pair<int32_t, int64_t>> next;  // symbol, state
  };
  int64_t fresh();
  void link(int64_t from, int64_t to) { states_[static_cast<size_t>(from)].free.push_back(to); }
  void close(std::vector<int64_t>& set, std::vector<uint8_t>& in, Budget& budget) const;

  int64_t symbols_;
  std::vector<State> states_;
};

}  // namespace lrnn::automata
