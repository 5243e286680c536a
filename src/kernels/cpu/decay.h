#pragma once
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/simd.h"

// Diagonal transitions in [0,1] or [-1,1], from the exponential e in (0,1].
namespace lrnn::kernels::LRNN_ISA {
namespace {

template <class F, bool kNegative> inline Vec<F> transition(Vec<F> e) {
  return kNegative ? fma<F>(splat<F>(2), e, splat<F>(-1)) : e;
}
// Its derivative with respect to the exponent.
template <class F, bool kNegative> inline Vec<F> slope(Vec<F> e) { return kNegative ? 2 * e : e; }

// The sums over the lanes of W vectors that lie one behind the other: lane i is that of vector i.
template <class F> inline Vec<F> lane_sums(const F* tile) {
  constexpr int W = kLanes<F>;
  alignas(64) F turned[W * W];
  transpose_tile(tile, W, turned, W);
  Vec<F> total = load(turned);
  for (int i = 1; i < W; ++i) total += load(turned + i * W);
  return total;
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
