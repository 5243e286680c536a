#pragma once
#include "kernels/cpu/vec.h"
#include "kernels/row_kernels.h"

// RMSNorm and the L2 norm of rows, forward and backward.
namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

using namespace kernels::LRNN_ISA;

template <class Io> inline Real<Io> inverse_norm(const Norm<Io>& a, const Io* x) {
  using R = Real<Io>;
  Vec<R> squares{};
  over<R>(a.D, [&](int64_t d, auto part) {
    const auto v = load(x + d, part);
    squares += v * v;
  });
  const R r = sum<R>(squares) * R(a.share) + R(a.eps);
  return 1 / (sizeof(R) == 4 ? R(__builtin_sqrtf(float(r))) : R(__builtin_sqrt(double(r))));
}

template <class Io> void norm(const Norm<Io>& a, int64_t first, int64_t last, Io* y) {
  using R = Real<Io>;
  for (int64_t i = first; i < last; ++i) {
    const Io* x = a.x + i * a.stride;
    Io* out = y + i * a.D;
    const R r = inverse_norm(a, x);
    if (a.weight)
      over<R>(a.D, [&](int64_t d, auto part) {
        store(out + d, load(x + d, part) * r * load(a.weight + d, part), part);
      });
    else
      over<R>(a.D, [&](int64_t d, auto part) { store(out + d, load(x + d, part) * r, part); });
  }
}

// With g = dy weight:  dx = r (g - x r^2 share (g . x)),  dweight = sum over rows of dy x r.
template <class Io, bool kWeight>
void norm_backward_(const Norm<Io>& a, int64_t first, int64_t last, const Io* dy, int64_t dy_stride,
                    Io* dx, Real<Io>* dweight) {
  using R = Real<Io>;
  for (int64_t i = first; i < last; ++i) {
    const Io *x = a.x + i * a.stride, *grad = dy + i * dy_stride;
    Io* out = dx + i * a.D;
    Vec<R> dots{}, squares{};
    over<R>(a.D, [&](int64_t d, auto part) {
      const auto v = load(x + d, part);
      auto g = load(grad + d, part);
      if constexpr (kWeight) g *= load(a.weight + d, part);
      squares += v * v;
      dots += g * v;
    });
    const R s = sum<R>(squares) * R(a.share) + R(a.eps);
    const R r = 1 / (sizeof(R) == 4 ? R(__builtin_sqrtf(float(s))) : R(__builtin_sqrt(double(s))));
    const R back = r * r * r * R(a.share) * sum<R>(dots);
    over<R>(a.D, [&](int64_t d, auto part) {
      const auto v = load(x + d, part);
      auto g = load(grad + d, part);
      if constexpr (kWeight) {
        store(dweight + d, load(dweight + d, part) + g * v * r, part);
        g *= load(a.weight + d, part);
      }
      store(out + d, g * r - v * back, part);
    });
  }
}

template <class Io>
void norm_backward(const Norm<Io>& a, int64_t first, int64_t last, const Io* dy, int64_t dy_stride,
                   Io* dx, Real<Io>* dweight) {
  if (a.weight)
    norm_backward_<Io, true>(a, first, last, dy, dy_stride, dx, dweight);
  else
    norm_backward_<Io, false>(a, first, last, dy, dy_stride, dx, dweight);
}

}  // namespace
}  // namespace lrnn::kernels::rows::LRNN_ISA
