#pragma once
#include <cstdint>

#include "kernels/types.h"

// Products with a matrix of few rows, such as the one that makes step sizes:
// ops/linears/few_linear.h.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostFewRows = 8, kMostFewColumns = 256;

struct FewLinear {
  Type type = Type::kFloat32;      // float32 or bfloat16, of everything
  int64_t rows = 0, D = 0, n = 0;  // n <= kMostFewRows, D <= kMostFewColumns in packs of eight
  const void* x = nullptr;         // [rows,D], rows `stride` elements apart
  int64_t stride = 0;
  const void* weight = nullptr;  // [n,D]
};

// y [rows,n] = x W^T
void few_product(const FewLinear& p, void* y, void* stream);

// dx [rows,D] = dy W, or with `add` more by that; and sums of dy^T x over runs of rows [few_parts,
// n, D] in float32, to be added up.
int64_t few_parts(const FewLinear& p);
void few_gradients(const FewLinear& p, const void* dy, void* dx, bool add, float* partial,
                   void* stream);

}  // namespace lrnn::kernels::cuda
