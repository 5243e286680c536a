#pragma once
#include <cstdint>

// The optimiser's step on the GPU: gradients gathered, clipped by their norm, and AdamW.
namespace lrnn::kernels::cuda {

// A gradient, where backward left it: its place in the flat buffer, and up to two tensors that
// together are the gradient (none: it is zero).
struct GradientPiece {
  const float* wide;       // float32 or null
  const uint16_t* narrow;  // bfloat16 or null
  int64_t begin, size;
};
inline constexpr int kPiecesAtOnce = 64;  // of one launch

// Fills flat[begin .. begin+size-1] of every piece and leaves sums of squares in partial, which has
// gather_blocks(pieces) entries.
int64_t gather_blocks(const GradientPiece* pieces, int64_t count);
void gather(const GradientPiece* pieces, int64_t count, float* flat, double* partial, void* stream);

// p <- p keep,  m <- b1 m + (1-b1) g,  v <- b2 v + (1-b2) g^2,  p <- p - rate m / (sqrt(v)/root +
// eps) with g the gradient times min(1, clip / norm); keep is 1 where `decays` is false.
struct AdamW {
  float *values, *m, *v;
  const float* grads;
  const bool* decays;
  int64_t n;
  float beta1, beta2, rest1, rest2, eps;
  const double* settings;  // rate, root, keep, clip (0: none), -, active
  double* report;          // loss (read), -, norm, applied (written)
  const double* partial;   // [partials]: they add up to the squared norm
  int64_t partials;
};
void adamw(const AdamW& a, void* stream);

}  // namespace lrnn::kernels::cuda
