#pragma once
#include "kernels/cpu/functions.h"
#include "kernels/row_kernels.h"

namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

using namespace kernels::LRNN_ISA;

// The first n lanes count, all of them without a number.
template <class F> inline F sum_of(Vec<F> x, All) { return sum<F>(x); }
template <class F> inline F sum_of(Vec<F> x, First part) {
  F out = 0;
  for (int64_t i = 0; i < part.n; ++i) out += x[i];
  return out;
}

template <class Io> Real<Io> largest(const Io* x, int64_t n) {
  using R = Real<Io>;
  Vec<R> best = splat(widen<R>(x[0]));
  over<R>(n, [&](int64_t i, auto part) {
    const Vec<R> v = load(x + i, part);
    // Lanes behind the end are zeros, which no row need have.
    if constexpr (std::is_same_v<decltype(part), All>) {
      best = v > best ? v : best;
    } else {
      for (int64_t j = 0; j < part.n; ++j)
        if (v[j] > best[0]) best[0] = v[j];
    }
  });
  R out = best[0];
  for (int i = 1; i < kLanes<R>; ++i)
    if (best[i] > out) out = best[i];
  return out;
}

// The exponentials twice: to keep them would round those of bfloat16.
template <class Io> void cross_entropy(const CrossEntropy<Io>& a, int64_t first, int64_t last) {
  using R = Real<Io>;
  for (int64_t row = first; row < last; ++row) {
    Io* const x = a.x + row * a.V;
    const int64_t target = a.target[row];
    if (target < 0) {
      a.loss[row] = a.right[row] = 0;
      if (a.gradient) over<R>(a.V, [&](int64_t i, auto part) { store(x + i, Vec<R>{}, part); });
      continue;
    }
    const R most = largest(x, a.V), at_target = widen<R>(x[target]);
    bool right = at_target == most;
    for (int64_t i = 0; right && i < target; ++i) right = widen<R>(x[i]) != most;
    // Full vectors are added up as vectors, the rest by itself.
    Vec<R> sums{};
    R rest = 0;
    over<R>(a.V, [&](int64_t i, auto part) {
      const Vec<R> e = exp_(load(x + i, part) - most);
      if constexpr (std::is_same_v<decltype(part), All>)
        sums += e;
      else
        rest = sum_of<R>(e, part);
    });
    const R total = sum<R>(sums) + rest;
    const R log_total =
        sizeof(R) == 4 ? R(__builtin_logf(float(total))) : R(__builtin_log(double(total)));
    a.loss[row] = most - at_target + log_total;
    a.right[row] = right ? 1 : 0;
    if (!a.gradient) continue;
    const R scale = a.share / total;
    over<R>(a.V, [&](int64_t i, auto part) {
      store(x + i, exp_(load(x + i, part) - most) * scale, part);
    });
    const R p = (sizeof(R) == 4 ? R(__builtin_expf(float(at_target - most)))
                                : R(__builtin_exp(double(at_target - most))));
    x[target] = narrow<Io>((p / total - 1) * a.share);
  }
}

}  // namespace
}  // namespace lrnn::kernels::rows::LRNN_ISA
