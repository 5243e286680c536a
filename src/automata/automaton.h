#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lrnn::automata {

// A complete deterministic automaton: reading symbol a in state s leads to next[s * symbols + a].
struct Automaton {
  int64_t states = 0, symbols = 0;
  std::vector<int32_t> next;
  int64_t start = 0;
  std::vector<std::string> state_names, symbol_names;  // one each, or empty: the numbers serve
  std::vector<uint8_t> accept = {};  // one per state, or empty: states are tracked

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
  bool accepts(const std::vector<int64_t>& word) const;  // of automata with accepting states

  // What reading x does to all states: s -> letter(x)[s].
  std::vector<int> letter(int64_t x) const;

  std::string state_name(int64_t s) const;
  std::string symbol_name(int64_t x) const;
  // Symbols in a row, with spaces between them where one has several characters.
  std::string text(const std::vector<int64_t>& word) const;

  // Throws when the table is not complete or leads out of the states.
  void check() const;
};

// Only the states that words lead to, numbered in the order in which they are met when words are
// read by length and then by symbol: the start is 0, and equal automata have equal tables.
Automaton reachable(const Automaton& a);

// The smallest automaton with the same accepted words, numbered like `reachable`; so two automata
// accept the same words exactly when these are equal. State names are lost.
Automaton minimal(const Automaton& a);

// States, symbols and elements are int64_t; vectors want size_t.
inline size_t at(int64_t i) { return static_cast<size_t>(i); }

// Every map of the states that some word makes, the identity of the empty word included; nothing
// when there are more than `most`.
std::optional<std::vector<std::vector<int>>> transition_monoid(const Automaton& a, int64_t most);

// The least p > 0 with f^(k+p) = f^k for large k.
int64_t period(const std::vector<int>& f);

}  // namespace lrnn::automata
