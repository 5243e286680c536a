#pragma once
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/simd.h"

// The functions that gates are made of, on the vectors of simd.h.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// log(1 + u) for 0 <= u <= 1, as 2 artanh(u / (2 + u)): the argument is at most 1/3, where nine
// terms of the series are enough for float and seventeen for double.
template <class F> inline Vec<F> log_one_plus(Vec<F> u) {
  constexpr int kTerms = sizeof(F) == 4 ? 9 : 17;
  const Vec<F> s = u / (2 + u), square = s * s;
  Vec<F> series = splat<F>(F(1) / F(2 * kTerms - 1));
#pragma GCC unroll 20
  for (int i = kTerms - 2; i >= 0; --i) series = series * square + F(1) / F(2 * i + 1);
  return 2 * s * series;
}

template <class F> inline Vec<F> log_sigmoid(Vec<F> x) {
  const Vec<F> zero{}, low = x < zero ? x : zero;
  return low - log_one_plus<F>(rows::exp_(x < zero ? x : -x));
}

template <class F> inline Vec<F> sigmoid(Vec<F> x) { return rows::sigmoid(x); }
template <class F> inline Vec<F> tanh(Vec<F> x) { return 2 * rows::sigmoid(2 * x) - 1; }

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
