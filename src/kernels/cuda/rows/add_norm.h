#pragma once
#include "kernels/cuda/rows/pointwise.h"

// A residual stream and the norm that follows: one pass forward and one backward, whatever the
// types of stream, branch and product. "wide" is double for kFloat64 and float otherwise.
namespace lrnn::kernels::cuda {

// s = x + y,  h = s / sqrt(mean(s^2) + eps) * weight, row by row.
struct AddNorm {
  int64_t rows = 0, D = 0;
  Type x_type = Type::kFloat32;  // of x and s
  Type y_type = Type::kFloat32, h_type = Type::kFloat32;
  RowArray x, y;  // y.data null: s is x, and not written
  RowArray s, h;
  const void* weight = nullptr;  // wide [D]
  double eps = 0;
};
inline constexpr int64_t kAddNormMost = 4096;  // values of a row: what a block holds

void add_norm_forward(const AddNorm& p, void* stream);

// dx = ds + what dh gives; dy is the same. s, weight, sizes and types as above.
struct AddNormGradient {
  RowArray ds;              // data null: none
  RowArray dh, dx, dy;      // dy.data null: not wanted
  void* partial = nullptr;  // wide [add_norm_parts(..),D]: they add up to dweight
};
int64_t add_norm_parts(int64_t rows, int64_t D);
void add_norm_backward(const AddNorm& p, const AddNormGradient& g, void* stream);

}  // namespace lrnn::kernels::cuda
