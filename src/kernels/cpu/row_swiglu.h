#pragma once
#include "kernels/cpu/functions.h"
#include "kernels/row_kernels.h"

namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

using namespace kernels::LRNN_ISA;

template <class Io> void swiglu(const Swiglu<Io>& a, int64_t first, int64_t last, Io* h) {
  for (int64_t i = first; i < last; ++i) {
    const Io *gate = a.gate + i * a.gate_stride, *up = a.up + i * a.up_stride;
    Io* out = h + i * a.D;
    over<Real<Io>>(a.D, [&](int64_t d, auto part) {
      store(out + d, silu(load(gate + d, part)) * load(up + d, part), part);
    });
  }
}

template <class Io>
void swiglu_backward(const Swiglu<Io>& a, int64_t first, int64_t last, const Io* dh,
                     int64_t dh_stride, Io* dgate, Io* dup, int64_t d_stride) {
  for (int64_t i = first; i < last; ++i) {
    const Io *gate = a.gate + i * a.gate_stride, *up = a.up + i * a.up_stride;
    const Io* grad = dh + i * dh_stride;
    over<Real<Io>>(a.D, [&](int64_t d, auto part) {
      const auto g = load(gate + d, part), s = sigmoid(g), dh_ = load(grad + d, part);
      store(dgate + i * d_stride + d, dh_ * load(up + d, part) * silu_slope(g, s), part);
      store(dup + i * d_stride + d, dh_ * g * s, part);
    });
  }
}

}  // namespace
}  // namespace lrnn::kernels::rows::LRNN_ISA
