#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "automata/algebra/permutation_group.h"
#include "compile/plan/head.h"

namespace lrnn::compile {

// A group as signed permutations of axes: element g takes axis i to sign[g][i] * axis image[g][i].
struct SignedAction {
  int64_t degree = 0;
  std::vector<Permutation> image;         // per element
  std::vector<std::vector<int8_t>> sign;  // per element
};

// Every action worth a head: on the orbits of the points, and, for small groups, on the cosets of
// subgroups, with and without signs. Subgroups come from a fixed sample, so two runs agree.
std::vector<SignedAction> signed_actions(const PermutationGroup& group);

// The product of reflections in e_i - e_j and e_i + e_j that is the signed permutation, as short as
// such products are; the first is applied first. The number of minus signs round the cycles must be
// even: see `with_even_signs`.
std::vector<Householder> reflections_of(const Permutation& image, const std::vector<int8_t>& sign);

int64_t reflections_needed(const Permutation& image, const std::vector<int8_t>& sign);

// With one more axis that carries the product of all signs, when some element needs it.
SignedAction with_even_signs(SignedAction action);

// Real irreducible representations, each as one orthogonal matrix per element (row by row).
struct Irrep {
  int64_t dim = 0;
  std::vector<std::vector<double>> matrices;
};
// Those inside an action, up to equal characters.
std::vector<Irrep> irreps_in(const PermutationGroup& group, const SignedAction& action);
// Elements as rotations and reflections of the plane, all different; none for most groups.
std::optional<Irrep> plane_irrep(const PermutationGroup& group);

// An orthogonal matrix as the shortest product of reflections, with roots that float32 holds well.
// `residual` receives the largest error that rounding leaves; more `draws` make it smaller.
std::vector<Householder> reflections_of(const std::vector<double>& matrix, int64_t dim, int draws,
                                        double* residual);

// How far a matrix turns the direction it turns most, in radians.
double largest_turn(const std::vector<double>& matrix, int64_t dim);

// Eigenvalues of a symmetric n x n matrix, increasing, and unit eigenvectors: vectors[k * n + i] is
// entry i of the one for values[k]. Jacobi's rotations: slow and as precise as doubles are.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen eigen_of(std::vector<double> matrix, int64_t n);

}  // namespace lrnn::compile
