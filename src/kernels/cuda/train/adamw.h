#pragma once
#include <cstdint>

// The optimiser's step on the GPU: gradients clipped by their norm, and AdamW.
namespace lrnn::kernels::cuda {

// The gradient of values begin .. begin+size-1, where backward left it: up to two tensors that
// together are the gradient (none: it is zero). All of the values decay or none of them does.
struct GradientPiece {
  const float* wide;       // float32 or null
  const uint16_t* narrow;  // bfloat16 or null
  int64_t begin, size;
  bool decays;
};
inline constexpr int kPiecesAtOnce = 64;  // of one launch

// p <- p keep,  m <- b1 m + (1-b1) g,  v <- b2 v + (1-b2) g^2,  p <- p - rate m / (sqrt(v)/root +
// eps) with g the gradient times min(1, clip / norm); keep is 1 where nothing decays. What belongs
// to no piece stays as it is.
struct AdamW {
  float *values, *m, *v;
  float beta1, beta2, rest1, rest2, eps;
  const double* settings;  // rate, root, keep, clip (0: none), -, active
  double* report;          // loss (read), -, norm, applied (written)
  const double* squares;   // [sums]: their sum is the square of the norm
  int64_t sums;
};
void adamw(const AdamW& a, const GradientPiece* pieces, int64_t count, void* stream);

// Such sums, of gradients where they lie: [gradient_sums(..)].
int64_t gradient_sums(const GradientPiece* pieces, int64_t count);
void gradient_squares(const GradientPiece* pieces, int64_t count, double* to, void* stream);
// And of every `each` numbers of x: [n / each, rounded up].
void squares(const float* x, int64_t n, int64_t each, double* to, void* stream);

}  // namespace lrnn::kernels::cuda
