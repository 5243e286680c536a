#pragma once
#include <cstdint>

namespace lrnn::kernels::cuda {

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
  double* partial;         // [adamw_blocks(n)]
};

int64_t adamw_blocks(int64_t n);
void adamw(const AdamW& a, void* stream);

}  // namespace lrnn::kernels::cuda
