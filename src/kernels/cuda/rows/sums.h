#pragma once
#include <cstdint>

#include "kernels/types.h"

// Partial sums of blocks added up on the GPU.
namespace lrnn::kernels::cuda {

// to[c] = the sum of `parts` rows of n values, in one order whatever the GPU: the second half of a
// sum that blocks began. "wide" is double for kFloat64 and float otherwise.
struct Parts {
  const void* from = nullptr;  // wide [parts,n]
  int64_t parts = 0, n = 0;
  Type type = Type::kFloat32;  // of the sums
  bool wide = false;           // the parts are double
  void* to = nullptr;
  int64_t across = 1;  // > 1: a row is a matrix [across, n / across], and `to` has it transposed
};
void add_parts(const Parts& p, void* stream);

}  // namespace lrnn::kernels::cuda
