#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "automata/permutation.h"

namespace lrnn::automata {

// All products of some permutations of the points 0 .. degree-1. Element 0 is the identity; the
// others come in the order in which a breadth-first search meets them.
class PermutationGroup {
 public:
  static constexpr int64_t kLargest = 50000;

  // Throws when the group has more than `largest` elements.
  PermutationGroup(int64_t degree, const std::vector<Permutation>& generators,
                   int64_t largest = kLargest);

  int64_t degree() const { return degree_; }
  int64_t order() const { return static_cast<int64_t>(elements_.size()); }
  const Permutation& element(int64_t g) const { return elements_[static_cast<size_t>(g)]; }
  int64_t find(const Permutation& p) const;            // -1 when it is not in the group
  int64_t product(int64_t first, int64_t then) const;  // "then" after "first"
  int64_t inverse(int64_t g) const;
  int64_t element_order(int64_t g) const;
  bool abelian() const;
  // 0 for the trivial group, 1 for abelian ones, ...; -1 when the series never ends (not solvable).
  int64_t derived_length() const;
  std::string name() const;  // "Z3", "S4", "Z2^2", or "order 20"

 private:
  int64_t degree_;
  std::vector<Permutation> generators_, elements_;
  std::map<Permutation, int64_t> index_;
};

int64_t reflections_of(const Permutation& p);  // points minus cycles: the rank of I - P

}  // namespace lrnn::automata
