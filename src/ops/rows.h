#pragma once
#include <ATen/Parallel.h>
#include <torch/types.h>

#include "base/error.h"
#include "kernels/row_kernels.h"

// How tensors meet the row kernels: views of their rows, their element type, and who works on what.
namespace lrnn::ops {

// A tensor as `rows` rows of D values, `stride` apart. Views such as one half of a product are used
// where they lie; anything else is copied.
struct RowView {
  torch::Tensor tensor;
  int64_t rows, D, stride;
  template <class Io> const Io* data() const {
    return static_cast<const Io*>(tensor.const_data_ptr());
  }
};
RowView row_view(const torch::Tensor& x);

// Ranges of rows that are a function of the size alone, never of the number of threads: sums over
// rows are taken per range and then over ranges, in order.
struct Ranges {
  int64_t rows, per;
  Ranges(int64_t rows, int64_t D, int64_t values = 8192)
      : rows(rows), per(std::max<int64_t>(1, values / std::max<int64_t>(1, D))) {}
  int64_t count() const { return (rows + per - 1) / per; }

  // body(range, first row, last row + 1); on this thread alone when there is little to do.
  template <class Body> void each(Body&& body) const {
    constexpr int64_t kFewest = 4;
    at::parallel_for(0, count(), kFewest, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) body(i, i * per, std::min(rows, (i + 1) * per));
    });
  }
};

// Calls f with a value of the kernels' element type for `dtype`.
template <class F> auto with_element(const char* op, at::ScalarType dtype, F&& f) {
  switch (dtype) {
    case at::kFloat: return f(float{});
    case at::kDouble: return f(double{});
    case at::kBFloat16: return f(kernels::rows::Bf16{});
    default:
      throw Error(cat("[", op, "] works in float32, float64 and bfloat16, got ", dtype),
                  "convert the inputs");
  }
}

// Contiguous, whatever the strides of x; works for symbolic sizes too.
inline torch::Tensor unfilled(const torch::Tensor& x) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

// partial [ranges, n] -> [n], added in order.
template <class R> void add_up(const R* partial, int64_t ranges, int64_t n, R* to) {
  std::fill(to, to + n, R(0));
  for (int64_t i = 0; i < ranges; ++i)
    for (int64_t j = 0; j < n; ++j) to[j] += partial[i * n + j];
}
torch::Tensor add_up(const torch::Tensor& partial);

}  // namespace lrnn::ops
