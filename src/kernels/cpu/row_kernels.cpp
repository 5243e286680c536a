#include "kernels/cpu/row_adamw.h"
#include "kernels/cpu/row_conv.h"
#include "kernels/cpu/row_cross_entropy.h"
#include "kernels/cpu/row_norm.h"
#include "kernels/cpu/row_swiglu.h"

namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

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
