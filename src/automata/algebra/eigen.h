#pragma once
#include <cstdint>
#include <vector>

namespace lrnn::automata {

// Eigenvalues of a symmetric n x n matrix, increasing, and unit eigenvectors: vectors[k * n + i] is
// entry i of the one for values[k]. Jacobi's rotations: slow and as precise as doubles are.
struct Eigen {
  std::vector<double> values, vectors;
};
Eigen eigen_of(std::vector<double> matrix, int64_t n);

}  // namespace lrnn::automata
