#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "automata/algebra/permutation.h"

namespace lrnn::automata {

// All products of some permutations of the points 0 .. degree-1, listed. Element 0 is the identity;
// the others come in the order in which a breadth-first search meets them.
class PermutationGroup {
 public:
  static constexpr int64_t kLargest = 50000;

  PermutationGroup() = default;  // trivial
  // Throws when the group has more than `largest` elements.
  PermutationGroup(int64_t degree, const std::vector<Permutation>& generators,
                   int64_t largest = kLargest);

  int64_t degree() const { return degree_; }
  int64_t order() const { return static_cast<int64_t>(elements_.size()); }
  const Permutation& element(int64_t g) const { return elements_[static_cast<size_t>(g)]; }
  int64_t find(const Permutation& p) const;            // -1 when it is not in the group
  int64_t product(int64_t first, int64_t then) const;  // what reading one and then the other does
  int64_t inverse(int64_t g) const;
  int64_t element_order(int64_t g) const;
  bool abelian() const;
  // Without those that follow from earlier ones. Element g > 0 is `parent(g)` followed by generator
  // `last(g)`, and parent(g) < g.
  const std::vector<Permutation>& generators() const { return generators_; }
  int64_t parent(int64_t g) const { return tree_[static_cast<size_t>(g)].first; }
  int64_t last(int64_t g) const { return tree_[static_cast<size_t>(g)].second; }

 private:
  int64_t degree_ = 0;
  std::vector<Permutation> generators_, elements_ = {Permutation{}};
  std::map<Permutation, int64_t> index_ = {{Permutation{}, 0}};
  std::vector<std::pair<int64_t, int64_t>> tree_ = {{0, 0}};
  std::vector<int32_t> next_;   // [element * generators + generator]
  std::vector<int32_t> table_;  // of small groups
};

// What is known of a group without listing it, by a chain of stabilisers (Schreier and Sims).
class StabiliserChain {
 public:
  static constexpr int64_t kMostPoints = 1000;

  // Throws when there are more points.
  StabiliserChain(int64_t degree, const std::vector<Permutation>& generators);

  double order() const;                 // exact up to 2^53
  std::vector<int64_t> primes() const;  // that divide the order
  bool contains(const Permutation& p) const;
  bool trivial() const { return levels_.empty(); }
  bool same_order(const StabiliserChain& other) const;
  // Generators without those that follow from earlier ones.
  const std::vector<Permutation>& generators() const { return generators_; }

 private:
  struct Level {
    int base;
    std::vector<Permutation> generators;
    std::vector<int> orbit;
    std::vector<Permutation> path;  // base -> point; empty when the orbit misses the point
  };
  // What is left of p after dividing by the chain from `level` on, and where that got stuck.
  std::pair<Permutation, size_t> sift(Permutation p, size_t level) const;
  void extend(size_t level, const Permutation& p);

  int64_t degree_;
  std::vector<Permutation> generators_;
  std::vector<Level> levels_;
};

// 0 for the trivial group, 1 for abelian ones, ...; -1 when the series never ends: not solvable.
int64_t derived_length(int64_t degree, const std::vector<Permutation>& generators);

// "1", "Z3", "Z2^2", "S4", "D5", or its order.
std::string group_name(int64_t degree, const std::vector<Permutation>& generators);

int64_t reflections_of(const Permutation& p);  // points minus cycles: the rank of I - P

}  // namespace lrnn::automata
