#include "automata/algebra/permutation_group.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"

namespace lrnn::automata {
namespace {

constexpr int64_t kTabulated = 2000;

Permutation identity_on(int64_t degree) {
  Permutation p(static_cast<size_t>(degree));
  std::iota(p.begin(), p.end(), 0);
  return p;
}

}  // namespace

PermutationGroup::PermutationGroup(int64_t degree, const std::vector<Permutation>& generators,
                                   int64_t largest)
    : degree_(degree) {
  const StabiliserChain chain(degree, generators);
  generators_ = chain.generators();
  if (chain.order() > static_cast<double>(largest))
    throw Error(cat("a group of the automaton has more than ", largest, " elements"));
  elements_ = {identity_on(degree)};
  index_ = {{elements_[0], 0}};
  for (size_t i = 0; i < elements_.size(); ++i)
    for (size_t g = 0; g < generators_.size(); ++g) {
      auto p = compose(generators_[g], elements_[i]);
      const auto [at, fresh] = index_.emplace(p, order());
      next_.push_back(static_cast<int32_t>(at->second));
      if (!fresh) continue;
      elements_.push_back(std::move(p));
      tree_.emplace_back(i, g);
    }
  if (order() > kTabulated) return;
  const auto n = elements_.size(), m = generators_.size();
  table_.assign(n * n, 0);
  for (size_t first = 0; first < n; ++first) {
    table_[first * n] = static_cast<int32_t>(first);
    for (size_t then = 1; then < n; ++then) {
      const auto [parent, g] = tree_[then];
      const auto before = static_cast<size_t>(table_[first * n + static_cast<size_t>(parent)]);
      table_[first * n + then] = next_[before * m + static_cast<size_t>(g)];
    }
  }
}

int64_t PermutationGroup::find(const Permutation& p) const {
  const auto found = index_.find(p);
  return found == index_.end() ? -1 : found->second;
}

int64_t PermutationGroup::product(int64_t first, int64_t then) const {
  if (!table_.empty()) return table_[static_cast<size_t>(first * order() + then)];
  return find(compose(element(then), element(first)));
}

int64_t PermutationGroup::inverse(int64_t g) const { return find(automata::inverse(element(g))); }

int64_t PermutationGroup::element_order(int64_t g) const {
  const auto& p = element(g);
  std::vector<uint8_t> seen(p.size(), 0);
  int64_t out = 1;
  for (size_t i = 0; i < p.size(); ++i) {
    int64_t length = 0;
    for (size_t j = i; !seen[j]; j = static_cast<size_t>(p[j])) seen[j] = 1, ++length;
    if (length > 1) out = std::lcm(out, length);
  }
  return out;
}

bool PermutationGroup::abelian() const {
  for (const auto& a : generators_)
    for (const auto& b : generators_)
      if (compose(a, b) != compose(b, a)) return false;
  return true;
}

int64_t reflections_of(const Permutation& p) {
  std::vector<uint8_t> seen(p.size(), 0);
  int64_t out = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (seen[i]) continue;
    seen[i] = 1;
    for (auto j = static_cast<size_t>(p[i]); !seen[j]; j = static_cast<size_t>(p[j]))
      seen[j] = 1, ++out;
  }
  return out;
}

namespace {

// Cyclic factors of an abelian group: how many elements have an order that divides p^k says how
// many factors have at least p^k elements.
std::string abelian_name(const std::map<int64_t, int64_t>& count, int64_t order) {
  std::string out;
  const auto add = [&](int64_t size, int64_t times) {
    if (times == 0) return;
    out += (out.empty() ? "Z" : "xZ") + std::to_string(size);
    if (times > 1) out += "^" + std::to_string(times);
  };
  for (int64_t p = 2; p <= order; ++p) {
    if (order % p) continue;
    std::vector<int64_t> at_least;
    for (int64_t q = p, below = 1; order % p == 0; q *= p) {
      int64_t n = 0, factors = 0;
      for (const auto& [o, c] : count)
        if (q % o == 0) n += c;
      for (int64_t ratio = n / below; ratio > 1; ratio /= p) ++factors, order /= p;
      at_least.push_back(factors);
      below = n;
    }
    at_least.push_back(0);
    for (size_t k = 0, q = static_cast<size_t>(p); k + 1 < at_least.size();
         ++k, q *= static_cast<size_t>(p))
      add(static_cast<int64_t>(q), at_least[k] - at_least[k + 1]);
  }
  return out;
}

// n rotations, and everything else turns twice into the identity.
bool dihedral(const PermutationGroup& g, const std::map<int64_t, int64_t>& count) {
  const int64_t n = g.order() / 2;
  if (g.order() % 2 || n < 3 || !count.count(n)) return false;
  for (int64_t r = 0; r < g.order(); ++r) {
    if (g.element_order(r) != n) continue;
    std::set<int64_t> turns;
    for (int64_t p = r; turns.insert(p).second;) p = g.product(p, r);
    bool all = true;
    for (int64_t s = 0; s < g.order() && all; ++s) all = turns.count(s) || g.element_order(s) == 2;
    return all;
  }
  return false;
}

}  // namespace

std::string group_name(int64_t degree, const std::vector<Permutation>& generators) {
  const StabiliserChain chain(degree, generators);
  if (chain.trivial()) return "1";
  constexpr double kListed = 2000;
  const double order = chain.order();
  const double all = degree > 2 && degree <= 20 ? static_cast<double>(factorial(degree)) : 0;
  if (order == all) return cat("S", degree);
  if (2 * order == all && degree > 3) return cat("A", degree);
  if (order > kListed)
    return order < 1e15 ? cat("order ", static_cast<int64_t>(order)) : "order > 10^15";
  const PermutationGroup g(degree, chain.generators());
  std::map<int64_t, int64_t> count;
  for (int64_t i = 0; i < g.order(); ++i) ++count[g.element_order(i)];
  const int64_t n = g.order();
  if (count.count(n)) return cat("Z", n);
  if (g.abelian()) return abelian_name(count, n);
  const auto has = [&](int64_t size, std::map<int64_t, int64_t> orders) {
    if (n != size) return false;
    for (const auto& [o, c] : orders)
      if (count[o] != c) return false;
    return true;
  };
  if (has(6, {})) return "S3";
  if (has(8, {{2, 1}})) return "Q8";
  if (has(12, {{3, 8}})) return "A4";
  if (has(24, {{2, 9}, {3, 8}, {4, 6}})) return "S4";
  if (has(20, {{4, 10}})) return "AGL(1,5)";
  if (has(60, {{5, 24}, {3, 20}})) return "A5";
  if (has(120, {{5, 24}, {2, 25}, {4, 30}, {6, 20}})) return "S5";
  if (has(360, {{5, 144}, {4, 90}})) return "A6";
  if (has(720, {{5, 144}, {2, 75}, {6, 240}})) return "S6";
  if (dihedral(g, count)) return cat("D", n / 2);
  return cat("order ", n);
}

}  // namespace lrnn::automata
