#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "automata/algebra/permutation_group.h"
#include "automata/automaton.h"

namespace lrnn::compile {

using automata::at;
using automata::Permutation;
using automata::PermutationGroup;

// One factor I - beta k k^T of a transition, k = root / |root|.
struct Householder {
  std::vector<double> root;  // integers in an exact head, a unit vector otherwise
  double beta = 2;
};

// The key of a root whose state is stored `copies` times over: the root, repeated and normalised.
// Exact in binary floating point for e_i - e_j and two copies: its entries are +-1/2.
std::vector<double> key_of(const Householder& h, int64_t copies);

enum class Exactness { kExact, kDrift };

// A group in the state of one head: element g stands for the matrix of g, and reading g multiplies
// by it from the left, H <- M(g) H, as a product of reflections.
struct GroupHead {
  std::string name;  // "permutations of 5 points", "rotations of the plane"
  int64_t dim = 0;
  Exactness exactness = Exactness::kExact;
  int64_t copies = 2;        // 2 in exact heads: doubled keys; 1 in drifting ones
  int64_t householders = 0;  // the most that a letter needs

  // The head tells apart the cosets of a kernel: coset[g] is the number of g's matrix.
  std::vector<int64_t> coset;
  std::vector<std::vector<double>> matrices;  // one per coset, dim * dim, row by row

  // How to multiply by group element g: steps[g], the first applied first; filled for the letters.
  std::vector<std::vector<Householder>> steps;

  double residual = 0;  // of drifting heads: the largest error of a letter's matrix in float32
  double margin = 0;    // of drifting heads: how far the state may turn, in radians
  double t_safe = 0;    // margin / residual; infinite for exact heads
};

// The group of a class of image sets, held by heads that together tell apart what it does to the
// tiles.
struct GroupPlan {
  PermutationGroup group;          // of the points of the class: find(action.points) is an element
  std::vector<int64_t> letters;    // elements that are read, without repetition
  std::vector<Permutation> tiles;  // what each element does to the tiles
  std::vector<GroupHead> heads;
  int64_t householders = 0;
  Exactness exactness = Exactness::kExact;
  double t_safe = 0;

  // An element that the heads hold: -1 when none has these cosets. Others may, with the same tiles.
  int64_t decode(const std::vector<int64_t>& cosets) const;
};

// The exact plan with the fewest Householders, then a drifting one if it needs fewer; none for
// groups too large to list. letters[i] moves the points, on_tiles[i] is what it does to the tiles.
std::vector<GroupPlan> group_plans(int64_t points, const std::vector<Permutation>& letters,
                                   int64_t tiles, const std::vector<Permutation>& on_tiles);

}  // namespace lrnn::compile
