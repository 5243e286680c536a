#include "automata/automaton.h"

#include "base/error.h"

namespace lrnn::automata {

int64_t Automaton::read(const std::vector<int64_t>& word) const {
  int64_t s = start;
  for (const int64_t x : word) s = step(s, x);
  return s;
}

std::string Automaton::state_name(int64_t s) const {
  return state_names.empty() ? std::to_string(s) : state_names[static_cast<size_t>(s)];
}

std::string Automaton::symbol_name(int64_t x) const {
  return symbol_names.empty() ? std::to_string(x) : symbol_names[static_cast<size_t>(x)];
}

void Automaton::check() const {
  lrnn::check(states >= 1 && symbols >= 0, "an automaton needs at least one state, got ", states);
  lrnn::check(start >= 0 && start < states, "the start state ", start, " is not one of the ",
              states, " states");
  lrnn::check(next.size() == static_cast<size_t>(states * symbols), "an automaton with ", states,
              " states and ", symbols, " symbols has ", states * symbols, " transitions, got ",
              next.size());
  for (size_t i = 0; i < next.size(); ++i)
    lrnn::check(next[i] >= 0 && next[i] < states, "state ", i / static_cast<size_t>(symbols),
                " leads to ", next[i], ", which is not one of the ", states, " states");
  lrnn::check(state_names.empty() || state_names.size() == static_cast<size_t>(states),
              "there are ", state_names.size(), " names for ", states, " states");
  lrnn::check(symbol_names.empty() || symbol_names.size() == static_cast<size_t>(symbols),
              "there are ", symbol_names.size(), " names for ", symbols, " symbols");
}

}  // namespace lrnn::automata
