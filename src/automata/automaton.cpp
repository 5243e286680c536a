#include "automata/automaton.h"

#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace lrnn::automata {

int64_t Automaton::read(const std::vector<int64_t>& word) const {
  int64_t s = start;
  for (const int64_t x : word) s = step(s, x);
  return s;
}

bool Automaton::accepts(const std::vector<int64_t>& word) const {
  return accept.at(static_cast<size_t>(read(word))) != 0;
}

std::vector<int> Automaton::letter(int64_t x) const {
  std::vector<int> out;
  for (int64_t s = 0; s < states; ++s) out.push_back(static_cast<int>(step(s, x)));
  return out;
}

std::string Automaton::state_name(int64_t s) const {
  return state_names.empty() ? std::to_string(s) : state_names[static_cast<size_t>(s)];
}

std::string Automaton::symbol_name(int64_t x) const {
  return symbol_names.empty() ? std::to_string(x) : symbol_names[static_cast<size_t>(x)];
}

std::string Automaton::text(const std::vector<int64_t>& word) const {
  bool characters = true;
  for (int64_t x = 0; x < symbols; ++x) characters &= symbol_name(x).size() == 1;
  std::string out;
  for (const int64_t x : word) out += (characters || out.empty() ? "" : " ") + symbol_name(x);
  return out;
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
  lrnn::check(accept.empty() || accept.size() == static_cast<size_t>(states), "there are ",
              accept.size(), " marks of acceptance for ", states, " states");
}

Automaton reachable(const Automaton& a) {
  std::vector<int64_t> order = {a.start}, number(static_cast<size_t>(a.states), -1);
  number[static_cast<size_t>(a.start)] = 0;
  for (size_t i = 0; i < order.size(); ++i)
    for (int64_t x = 0; x < a.symbols; ++x) {
      auto& n = number[static_cast<size_t>(a.step(order[i], x))];
      if (n >= 0) continue;
      n = static_cast<int64_t>(order.size());
      order.push_back(a.step(order[i], x));
    }
  const auto at = [&](int64_t i) { return order[static_cast<size_t>(i)]; };
  auto out = Automaton::from(
      static_cast<int64_t>(order.size()), a.symbols,
      [&](int64_t i, int64_t x) { return number[static_cast<size_t>(a.step(at(i), x))]; });
  out.symbol_names = a.symbol_names;
  for (const int64_t s : order) {
    out.state_names.push_back(a.state_name(s));
    if (!a.accept.empty()) out.accept.push_back(a.accept[static_cast<size_t>(s)]);
  }
  return out;
}

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
