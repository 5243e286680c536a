#pragma once
#include <cstdint>

#include "kernels/types.h"

// The row-wise functions of ops/pointwise/pointwise.h on the GPU: device pointers in, launches on a
// stream. "wide" is double for kFloat64 and float otherwise.
namespace lrnn::kernels::cuda {

// Rows of D values, `stride` apart; or groups of `per` such rows, `outer` apart.
struct RowArray {
  void* data = nullptr;
  int64_t stride = 0, per = 0, outer = 0;
};

struct RowSize {
  Type type = Type::kFloat32;
  int64_t rows = 0, D = 0;
};

// y = x / sqrt(share sum(x^2) + eps) * weight, row by row; weight is wide [D] or null for ones.
struct NormInputs : RowSize {
  RowArray x;  // may come in groups
  const void* weight = nullptr;
  double share = 1, eps = 0;
};

inline constexpr int64_t kNormRange = 256;  // rows summed into one partial of dweight

void norm_forward(const NormInputs& p, const RowArray& y, void* stream);
// inverse: wide [rows], workspace. dweight: wide [rows / kNormRange rounded up, D], or null.
void norm_backward(const NormInputs& p, const RowArray& dy, const RowArray& dx, void* inverse,
                   void* dweight, void* stream);

void swiglu_forward(const RowSize& size, const RowArray& gate, const RowArray& up,
                    const RowArray& h, void* stream);
void swiglu_backward(const RowSize& size, const RowArray& dh, const RowArray& gate,
                     const RowArray& up, const RowArray& dgate, const RowArray& dup, void* stream);

}  // namespace lrnn::kernels::cuda
