#include <algorithm>
#include <numeric>

#include "automata/algebra/permutation_group.h"
#include "base/error.h"

// Schreier and Sims: a group of permutations as a chain of stabilisers of points, without listing
// its elements.
namespace lrnn::automata {
namespace {

bool fixes_all(const Permutation& p) {
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] != static_cast<int>(i)) return false;
  return true;
}

Permutation commutator(const Permutation& a, const Permutation& b) {
  return compose(compose(inverse(a), inverse(b)), compose(a, b));
}

}  // namespace

StabiliserChain::StabiliserChain(int64_t degree, const std::vector<Permutation>& generators)
    : degree_(degree) {
  if (degree > kMostPoints)
    throw Error(cat("a group of the automaton moves ", degree, " states, more than ", kMostPoints),
                "use a smaller automaton, such as one that tracks points instead of elements");
  for (const auto& g : generators) {
    const auto [rest, level] = sift(g, 0);
    if (fixes_all(rest)) continue;
    generators_.push_back(g);
    extend(0, g);
  }
}

std::pair<Permutation, size_t> StabiliserChain::sift(Permutation p, size_t level) const {
  for (; level < levels_.size(); ++level) {
    const auto& l = levels_[level];
    const auto& path = l.path[static_cast<size_t>(p[static_cast<size_t>(l.base)])];
    if (path.empty()) break;
    p = compose(inverse(path), p);
  }
  return {std::move(p), level};
}

// p fixes the base points above `level` and is not in the chain from there on.
void StabiliserChain::extend(size_t level, const Permutation& p) {
  if (level == levels_.size()) {
    int base = 0;
    while (p[static_cast<size_t>(base)] == base) ++base;
    Permutation identity(static_cast<size_t>(degree_));
    std::iota(identity.begin(), identity.end(), 0);
    levels_.push_back({base, {}, {base}, std::vector<Permutation>(static_cast<size_t>(degree_))});
    levels_.back().path[static_cast<size_t>(base)] = std::move(identity);
  }
  levels_[level].generators.push_back(p);
  // Old points have seen the old generators; new points have seen none.
  const size_t old_points = levels_[level].orbit.size();
  for (size_t i = 0; i < levels_[level].orbit.size(); ++i)
    for (size_t g = i < old_points ? levels_[level].generators.size() - 1 : 0;
         g < levels_[level].generators.size(); ++g) {
      auto& l = levels_[level];
      auto way = compose(l.generators[g], l.path[static_cast<size_t>(l.orbit[i])]);
      const int to = way[static_cast<size_t>(l.base)];
      if (l.path[static_cast<size_t>(to)].empty()) {
        l.orbit.push_back(to);
        l.path[static_cast<size_t>(to)] = std::move(way);
        continue;
      }
      // Two ways to one point differ by something that fixes the base.
      const auto [rest, stuck] = sift(std::move(way), level);
      if (fixes_all(rest)) continue;
      for (size_t below = stuck; below > level; --below) extend(below, rest);
    }
}

double StabiliserChain::order() const {
  double out = 1;
  for (const auto& l : levels_) out *= static_cast<double>(l.orbit.size());
  return out;
}

bool StabiliserChain::same_order(const StabiliserChain& other) const {
  const auto exponents = [](const StabiliserChain& c) {
    std::vector<int64_t> out(static_cast<size_t>(c.degree_) + 1, 0);
    for (const auto& l : c.levels_)
      for (size_t n = l.orbit.size(), p = 2; n > 1; ++p)
        for (; n % p == 0; n /= p) ++out[p];
    return out;
  };
  return exponents(*this) == exponents(other);
}

std::vector<int64_t> StabiliserChain::primes() const {
  std::vector<int64_t> out;
  for (const auto& l : levels_)
    for (size_t n = l.orbit.size(), p = 2; n > 1; ++p)
      for (; n % p == 0; n /= p) out.push_back(static_cast<int64_t>(p));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool StabiliserChain::contains(const Permutation& p) const { return fixes_all(sift(p, 0).first); }

int64_t derived_length(int64_t degree, const std::vector<Permutation>& generators) {
  StabiliserChain group(degree, generators);
  for (int64_t length = 0;; ++length) {
    if (group.trivial()) return length;
    // The derived group is the smallest normal one that holds the commutators of generators.
    std::vector<Permutation> inside;
    for (const auto& a : group.generators())
      for (const auto& b : group.generators()) inside.push_back(commutator(a, b));
    StabiliserChain derived(degree, inside);
    inside = derived.generators();
    for (size_t i = 0; i < inside.size(); ++i)
      for (const auto& g : group.generators()) {
        auto moved = compose(compose(inverse(g), inside[i]), g);
        if (derived.contains(moved)) continue;
        inside.push_back(std::move(moved));
        derived = StabiliserChain(degree, inside);
      }
    if (derived.same_order(group)) return -1;
    group = std::move(derived);
  }
}

}  // namespace lrnn::automata
