#include "kernels/cpu/functions.h"
#include "kernels/cpu/row_conv.h"
#include "kernels/cpu/row_cross_entropy.h"
#include "kernels/cpu/row_norm.h"

// The short ones stand here, the others in headers of their own; and the table of all of them.
namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

using namespace kernels::LRNN_ISA;

// ----------------------------------------------------------------------------------------- SwiGLU

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

// ------------------------------------------------------------------------------------------ AdamW

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

// -------------------------------------------------------------------------------------- the table

template <class Io> void exp_rows(const Io* x, int64_t n, Io* y) {
  over<Real<Io>>(n, [&](int64_t i, auto part) { store(y + i, exp_(load(x + i, part)), part); });
}

template <class Io> constexpr Table<Io> make_table() {
  return {norm<Io>, norm_backward<Io>, swiglu<Io>,        swiglu_backward<Io>,
          conv<Io>, conv_backward<Io>, cross_entropy<Io>, exp_rows<Io>};
}

}  // namespace

const Table<float> kFloat = make_table<float>();
const Table<double> kDouble = make_table<double>();
const Table<Bf16> kBf16 = make_table<Bf16>();
const FlatTable kFlat = {adamw, sum_of_squares};

}  // namespace lrnn::kernels::rows::LRNN_ISA
