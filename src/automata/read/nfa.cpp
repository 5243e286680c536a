#include "automata/read/nfa.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace lrnn::automata {

void Budget::spend(int64_t count) {
  steps -= count;
  if (steps < 0)
    throw Error("the regular expression takes too much work to turn into an automaton",
                "use smaller repeats and fewer nested choices");
}

int64_t Nfa::fresh() {
  if (static_cast<int64_t>(states_.size()) >= Budget::kMostNfaStates)
    throw Error(cat("the regular expression is too large: more than ", Budget::kMostNfaStates,
                    " states before it is simplified"),
                "use smaller repeats");
  states_.emplace_back();
  return static_cast<int64_t>(states_.size()) - 1;
}

Nfa::Fragment Nfa::empty_word() {
  const int64_t s = fresh();
  return {s, s};
}

Nfa::Fragment Nfa::one_of(std::vector<int32_t> symbols) {
  const int64_t in = fresh(), out = fresh();
  for (const int32_t x : symbols) states_[static_cast<size_t>(in)].next.emplace_back(x, out);
  return {in, out};
}

Nfa::Fragment Nfa::then(Fragment a, Fragment b) {
  link(a.out, b.in);
  return {a.in, b.out};
}

Nfa::Fragment Nfa::either(const std::vector<Fragment>& all) {
  const int64_t in = fresh(), out = fresh();
  for (const auto& f : all) link(in, f.in), link(f.out, out);
  return {in, out};
}

// New ends on both sides: the old ones may be entered and left in the middle of a word.
Nfa::Fragment Nfa::optional(Fragment a) {
  const int64_t in = fresh(), out = fresh();
  link(in, a.in), link(a.out, out), link(in, out);
  return {in, out};
}

Nfa::Fragment Nfa::repeated(Fragment a) {
  const int64_t in = fresh(), out = fresh();
  link(in, a.in), link(a.out, out), link(a.out, a.in);
  return {in, out};
}

Nfa::Fragment Nfa::embed(const Automaton& a) {
  std::vector<int64_t> at;
  for (int64_t s = 0; s < a.states; ++s) at.push_back(fresh());
  const int64_t in = fresh(), out = fresh();
  link(in, at[static_cast<size_t>(a.start)]);
  for (int64_t s = 0; s < a.states; ++s) {
    auto& state = states_[static_cast<size_t>(at[static_cast<size_t>(s)])];
    for (int64_t x = 0; x < a.symbols; ++x)
      state.next.emplace_back(static_cast<int32_t>(x), at[static_cast<size_t>(a.step(s, x))]);
    if (a.accept[static_cast<size_t>(s)]) state.free.push_back(out);
  }
  return {in, out};
}

// Adds what is reached without reading; `in` says who is in the set, and is all zero afterwards.
void Nfa::close(std::vector<int64_t>& set, std::vector<uint8_t>& in, Budget& budget) const {
  for (const int64_t s : set) in[static_cast<size_t>(s)] = 1;
  for (size_t i = 0; i < set.size(); ++i) {
    const auto& state = states_[static_cast<size_t>(set[i])];
    budget.spend(1 + static_cast<int64_t>(state.free.size()));
    for (const int64_t t : state.free) {
      if (in[static_cast<size_t>(t)]) continue;
      in[static_cast<size_t>(t)] = 1;
      set.push_back(t);
    }
  }
  for (const int64_t s : set) in[static_cast<size_t>(s)] = 0;
  std::sort(set.begin(), set.end());
}

Automaton Nfa::determinise(Fragment whole, Budget& budget) const {
  std::vector<uint8_t> in(states_.size(), 0);
  std::map<std::vector<int64_t>, int32_t> number;
  std::vector<const std::vector<int64_t>*> order;
  Automaton out;
  out.symbols = symbols_;
  const auto add = [&](std::vector<int64_t> set) {
    close(set, in, budget);
    const auto [at, is_new] = number.emplace(std::move(set), static_cast<int32_t>(number.size()));
    if (!is_new) return at->second;
    if (static_cast<int64_t>(order.size()) >= Budget::kMostStates)
      throw Error(cat("the automaton of the regular expression has more than ", Budget::kMostStates,
                      " states"),
                  "use smaller repeats after choices such as .*");
    order.push_back(&at->first);
    out.accept.push_back(std::binary_search(at->first.begin(), at->first.end(), whole.out));
    return at->second;
  };
  add({whole.in});
  for (size_t i = 0; i < order.size(); ++i) {
    std::vector<std::vector<int64_t>> targets(static_cast<size_t>(symbols_));
    for (const int64_t s : *order[i])
      for (const auto& [x, t] : states_[static_cast<size_t>(s)].next) {
        budget.spend(1);
        targets[static_cast<size_t>(x)].push_back(t);
      }
    for (auto& set : targets) {
      std::sort(set.begin(), set.end());
      set.erase(std::unique(set.begin(), set.end()), set.end());
      budget.spend(1);
      out.next.push_back(add(std::move(set)));
    }
  }
  out.states = static_cast<int64_t>(order.size());
  return minimal(out);
}

}  // namespace lrnn::automata
