#pragma once
#include <cstdint>

#include "kernels/types.h"

// Products of a few rows with a large matrix, which is read once: ops/linears/thin_linear.h.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostThinRows = 4;

struct ThinLinear {
  Type type = Type::kFloat32;      // float32 or bfloat16, of everything
  int64_t rows = 0, D = 0, n = 0;  // rows <= kMostThinRows; rows of x and weight lie on 16 bytes
  const void* x = nullptr;         // [rows,D], rows `stride` elements apart
  int64_t stride = 0;
  const void* weight = nullptr;  // [n,D]
};

// y [rows,n] = x W^T
void thin_product(const ThinLinear& p, void* y, void* stream);

}  // namespace lrnn::kernels::cuda
