#include "compile/words.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace lrnn::compile {

namespace {

// States from which some other one can be reached.
std::vector<bool> live_states(const automata::Automaton& a) {
  std::vector<bool> out;
  for (int64_t s = 0; s < a.states; ++s) {
    bool leaves = false;
    for (int64_t x = 0; x < a.symbols; ++x) leaves |= a.step(s, x) != s;
    out.push_back(leaves);
  }
  return out;
}

Word random_word(const automata::Automaton& a, uint64_t seed, std::string name) {
  auto random = std::make_shared<Random>(seed, 1, 0);
  const auto symbols = uint64_t(a.symbols);
  return {std::move(name),
          [random, symbols](int64_t, int64_t) { return int64_t(random->below(symbols)); }};
}

Word periodic(std::string name, std::vector<int64_t> u) {
  return {std::move(name),
          [u = std::move(u)](int64_t t, int64_t) { return u[size_t(t) % u.size()]; }};
}

// Lexicographically least, by joining Lyndon words.
std::vector<int64_t> de_bruijn(int64_t symbols, int64_t order) {
  std::vector<int64_t> out, w = {-1};
  while (!w.empty()) {
    ++w.back();
    const size_t length = w.size();
    if (order % int64_t(length) == 0) out.insert(out.end(), w.begin(), w.end());
    while (int64_t(w.size()) < order) w.push_back(w[w.size() - length]);
    while (!w.empty() && w.back() == symbols - 1) w.pop_back();
  }
  return out;
}

std::string spell(const automata::Automaton& a, const std::vector<int64_t>& u) {
  std::string out;
  for (const int64_t x : u) out += (out.empty() ? "" : " ") + a.symbol_name(x);
  return out;
}

}  // namespace

std::vector<Word> long_words(const automata::Automaton& a, uint64_t seed) {
  auto random = std::make_shared<Random>(seed, 2, 0);
  Word walk{"walk outside absorbing states",
            [random, live = live_states(a), &a](int64_t, int64_t state) {
              auto x = int64_t(random->below(uint64_t(a.symbols)));
              for (int64_t i = 0; i < a.symbols && !live[size_t(a.step(state, x))]; ++i)
                x = (x + 1) % a.symbols;
              return x;
            }};
  return {random_word(a, seed, "uniform"), std::move(walk)};
}

std::vector<Word> structured_words(const automata::Automaton& a, uint64_t seed, size_t most) {
  std::vector<Word> out;
  int64_t order = 6;
  while (order > 1 && std::pow(double(a.symbols), double(order)) > 1e6) --order;
  out.push_back(periodic("de Bruijn", de_bruijn(a.symbols, order)));
  std::vector<std::vector<int64_t>> periods;
  for (int64_t x = 0; x < a.symbols; ++x) periods.push_back({x});
  for (int64_t x = 0; x < a.symbols && a.symbols <= 30; ++x)
    for (int64_t y = 0; y < a.symbols; ++y) {
      if (x != y) periods.push_back({x, y});
      for (int64_t z = 0; z < a.symbols && a.symbols <= 8; ++z)
        if (x != y || y != z) periods.push_back({x, y, z});
    }
  auto random = std::make_shared<Random>(seed, 3, 0);
  for (int64_t x = 0; x < std::min<int64_t>(a.symbols, 2); ++x)
    out.push_back(
        {"noise on " + a.symbol_name(x), [random, x, n = uint64_t(a.symbols)](int64_t, int64_t) {
           return random->below(64) ? x : int64_t(random->below(n));
         }});
  // An even choice when there are more periods than places.
  const size_t places = most - std::min(most, out.size());
  const size_t every =
      std::max<size_t>(1, (periods.size() + places - 1) / std::max<size_t>(places, 1));
  for (size_t i = 0; i < periods.size() && out.size() < most; i += every)
    out.push_back(periodic("period " + spell(a, periods[i]), periods[i]));
  return out;
}

std::vector<std::vector<int64_t>> covering_words(const automata::Automaton& a, uint64_t seed,
                                                 size_t most) {
  std::vector<std::vector<int64_t>> access(size_t(a.states)), out;
  std::vector<bool> seen(size_t(a.states));
  std::vector<int64_t> queue = {a.start};
  seen[size_t(a.start)] = true;
  for (size_t i = 0; i < queue.size(); ++i)
    for (int64_t x = 0; x < a.symbols; ++x) {
      const int64_t to = a.step(queue[i], x);
      if (seen[size_t(to)]) continue;
      seen[size_t(to)] = true;
      access[size_t(to)] = access[size_t(queue[i])];
      access[size_t(to)].push_back(x);
      queue.push_back(to);
    }
  Random random(seed, 4, 0);
  for (int64_t x = 0; x < a.symbols; ++x)
    for (const int64_t s : queue) {
      if (out.size() >= most) return out;
      auto word = access[size_t(s)];
      word.push_back(x);
      for (int i = 0; i < 3; ++i) word.push_back(int64_t(random.below(uint64_t(a.symbols))));
      out.push_back(std::move(word));
    }
  return out;
}

EndingWords::EndingWords(const automata::Automaton& a, std::vector<bool> asked, uint64_t seed)
    : a_(a),
      all_(std::find(asked.begin(), asked.end(), false) == asked.end()),
      endings_{std::move(asked)},
      random_(seed, 5, 0) {}

const std::vector<bool>& EndingWords::endings(size_t letters) {
  while (!all_ && endings_.size() <= letters) {
    std::vector<bool> before(size_t(a_.states));
    for (int64_t s = 0; s < a_.states; ++s)
      for (int64_t x = 0; x < a_.symbols && !before[size_t(s)]; ++x)
        before[size_t(s)] = endings_.back()[size_t(a_.step(s, x))];
    endings_.push_back(std::move(before));
  }
  return endings_[all_ ? 0 : letters];
}

std::vector<int64_t> EndingWords::next(size_t length) {
  if (!endings(length)[size_t(a_.start)]) return {};
  std::vector<int64_t> out;
  for (int64_t s = a_.start; out.size() < length; s = a_.step(s, out.back())) {
    const auto& good = endings(length - out.size() - 1);
    auto x = int64_t(random_.below(uint64_t(a_.symbols)));
    for (int again = 0; again < 16 && !good[size_t(a_.step(s, x))]; ++again)
      x = int64_t(random_.below(uint64_t(a_.symbols)));
    while (!good[size_t(a_.step(s, x))]) x = (x + 1) % a_.symbols;
    out.push_back(x);
  }
  return out;
}

}  // namespace lrnn::compile
