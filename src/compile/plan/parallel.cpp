#include <algorithm>
#include <numeric>
#include <set>

#include "automata/automaton.h"
#include "compile/plan/plan.h"

// Congruences: partitions of the states that every letter respects (Hartmanis and Stearns).
namespace lrnn::compile {
namespace {

using Blocks = std::vector<int64_t>;  // of each state, numbered in the order of the states
constexpr int64_t kMostSplitStates = 64;
constexpr size_t kMostCongruences = 2000;

// The finest congruence that joins these pairs.
Blocks congruence(const Automaton& a, std::vector<std::pair<int64_t, int64_t>> pairs) {
  std::vector<int64_t> above(at(a.states));
  std::iota(above.begin(), above.end(), int64_t{0});
  const auto top = [&](int64_t s) {
    while (above[at(s)] != s) s = above[at(s)] = above[at(above[at(s)])];
    return s;
  };
  while (!pairs.empty()) {
    auto [p, q] = pairs.back();
    pairs.pop_back();
    if (top(p) == top(q)) continue;
    above[at(top(p))] = top(q);
    // Joining blocks chains their members, so the images of the joined pair stand for all.
    for (int64_t x = 0; x < a.symbols; ++x) pairs.emplace_back(a.step(p, x), a.step(q, x));
  }
  Blocks out, number(at(a.states), -1);
  int64_t blocks = 0;
  for (int64_t s = 0; s < a.states; ++s) {
    auto& n = number[at(top(s))];
    if (n < 0) n = blocks++;
    out.push_back(n);
  }
  return out;
}

std::vector<Blocks> congruences(const Automaton& a) {
  std::set<Blocks> base;
  for (int64_t p = 0; p < a.states; ++p)
    for (int64_t q = 0; q < p; ++q) base.insert(congruence(a, {{p, q}}));
  std::set<Blocks> seen = base;
  std::vector<Blocks> out(base.begin(), base.end());
  for (size_t i = 0; i < out.size() && out.size() < kMostCongruences; ++i)
    for (const auto& b : base) {
      std::vector<std::pair<int64_t, int64_t>> pairs;
      for (const auto& part : {out[i], b}) {
        std::vector<int64_t> first(at(a.states), -1);
        for (int64_t s = 0; s < a.states; ++s) {
          auto& f = first[at(part[at(s)])];
          if (f < 0)
            f = s;
          else
            pairs.emplace_back(f, s);
        }
      }
      auto joined = congruence(a, std::move(pairs));
      if (seen.insert(joined).second) out.push_back(std::move(joined));
    }
  return out;
}

Automaton quotient(const Automaton& a, const Blocks& blocks) {
  const int64_t n = *std::max_element(blocks.begin(), blocks.end()) + 1;
  std::vector<int64_t> member(at(n), 0);
  for (int64_t s = 0; s < a.states; ++s) member[at(blocks[at(s)])] = s;
  auto out = Automaton::from(
      n, a.symbols, [&](int64_t b, int64_t x) { return blocks[at(a.step(member[at(b)], x))]; });
  out.start = blocks[at(a.start)];
  out.symbol_names = a.symbol_names;
  return out;
}

bool permutes_or_resets(const Automaton& a) {
  for (int64_t x = 0; x < a.symbols; ++x) {
    const auto f = a.letter(x);
    const auto image = static_cast<int64_t>(std::set<int>(f.begin(), f.end()).size());
    if (image != 1 && image != a.states) return false;
  }
  return true;
}

bool separate(const std::vector<const Component*>& parts, int64_t states) {
  std::set<std::vector<int64_t>> seen;
  for (int64_t s = 0; s < states; ++s) {
    std::vector<int64_t> blocks;
    for (const auto* c : parts) blocks.push_back(c->block[at(s)]);
    if (!seen.insert(blocks).second) return false;
  }
  return true;
}

// As few as are needed, cheap ones first.
std::vector<Component> chosen(const std::vector<Component>& all, int64_t states) {
  std::vector<const Component*> parts;
  for (const auto& c : all) parts.push_back(&c);
  std::stable_sort(parts.begin(), parts.end(), [](const Component* p, const Component* q) {
    const auto cost = [](const Component* c) {
      return std::tuple(c->layers(), householders_of(*c), c->automaton.states);
    };
    return cost(p) < cost(q);
  });
  if (!separate(parts, states)) return {};
  for (size_t i = parts.size(); i-- > 0;) {
    auto fewer = parts;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (separate(fewer, states)) parts = std::move(fewer);
  }
  std::vector<Component> out;
  for (const auto* c : parts) out.push_back(*c);
  return out;
}

}  // namespace

std::vector<std::vector<Component>> parallel_components(const Automaton& a) {
  if (a.states > kMostSplitStates) return {};
  std::vector<Component> exact, drift;
  for (const auto& blocks : congruences(a)) {
    const auto q = quotient(a, blocks);
    if (q.states == 1 || !permutes_or_resets(q)) continue;
    auto options = components_of(q, std::make_shared<Cascade>(q));
    if (options.empty()) continue;
    for (auto& c : options) c.block = blocks;
    exact.push_back(options.front()), drift.push_back(options.back());
  }
  std::vector<std::vector<Component>> out;
  for (const auto& all : {exact, drift})
    if (auto parts = chosen(all, a.states); !parts.empty()) out.push_back(std::move(parts));
  return out;
}

}  // namespace lrnn::compile
