#pragma once
#include "kernels/cpu/vec.h"
#include "kernels/row_kernels.h"

namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

using namespace kernels::LRNN_ISA;

inline Vec<float> square_root(Vec<float> x) {
  Vec<float> r;
  for (int i = 0; i < kLanes<float>; ++i) r[i] = __builtin_sqrtf(x[i]);
  return r;
}

void adamw(const AdamwStep& a, int64_t n, float* p, const float* grad, float* m, float* v) {
  over<float>(n, [&](int64_t i, auto part) {
    const auto g = load(grad + i, part) * a.scale;
    const auto m1 = a.beta1 * load(m + i, part) + a.rest1 * g;
    const auto v1 = a.beta2 * load(v + i, part) + a.rest2 * g * g;
    store(m + i, m1, part);
    store(v + i, v1, part);
    const auto step = a.rate * m1 / (square_root(v1) / a.root + a.eps);
    store(p + i, load(p + i, part) * a.keep - step, part);
  });
}

double sum_of_squares(const float* x, int64_t n) {
  typedef float Half
      __attribute__((vector_size(kVectorBytes / 2)));  // as many floats as doubles fit
  Vec<double> even{}, odd{};
  int64_t i = 0;
  const auto squared = [&](int64_t at) {
    Half h;
    std::memcpy(&h, x + at, sizeof h);
    const auto wide = __builtin_convertvector(h, Vec<double>);
    return wide * wide;
  };
  for (; i + 2 * kLanes<double> <= n; i += 2 * kLanes<double>) {
    even += squared(i);
    odd += squared(i + kLanes<double>);
  }
  double total = sum<double>(even + odd);
  for (; i < n; ++i) total += double(x[i]) * double(x[i]);
  return total;
}

}  // namespace
}  // namespace lrnn::kernels::rows::LRNN_ISA
