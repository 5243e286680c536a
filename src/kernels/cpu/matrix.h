#pragma once
#include "kernels/cpu/vec.h"

// Small matrix products, register-tiled, for operands that sit in the first two cache levels.
namespace lrnn::kernels::LRNN_ISA {
namespace {

// The strides (in elements) of a matrix that is read element by element, so that a transposed
// operand costs nothing.
template <class F> struct Operand {
  const F* data;
  int64_t row, column;
};

// out[m, :] (+)= sum_k a[m, k] b[k, :] for a tile of M rows and NV vectors.
template <class F, int M, int NV>
inline void product_tile(const F* a, int64_t a_row, int64_t a_column, const F* b, int64_t b_row,
                         int64_t depth, F* out, int64_t out_row, bool accumulate) {
  constexpr int W = kLanes<F>;
  Vec<F> sum[M][NV];
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < NV; ++n)
      sum[m][n] = accumulate ? load(out + m * out_row + n * W) : Vec<F>{};
  for (int64_t k = 0; k < depth; ++k, a += a_column, b += b_row) {
    Vec<F> row[NV];
    for (int n = 0; n < NV; ++n) row[n] = load(b + n * W);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < NV; ++n) sum[m][n] += a[m * a_row] * row[n];
  }
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < NV; ++n) store(out + m * out_row + n * W, sum[m][n]);
}

// Which part of the depth a row block [m, m + M) needs; the identity for full matrices.
struct Full {
  int64_t begin(int64_t) const { return 0; }
  int64_t end(int64_t) const { return INT64_MAX; }
};
// Row m of the left operand is zero from column (m + 1) * step on.
struct Lower {
  int64_t step = 1;
  int64_t begin(int64_t) const { return 0; }
  int64_t end(int64_t last) const { return last * step; }
};
// Row m of the left operand is zero before column m / step.
struct Upper {
  int64_t step = 1;
  int64_t begin(int64_t first) const { return first / step; }
  int64_t end(int64_t) const { return INT64_MAX; }
};

template <class F, int M, int NV, class Shape>
inline int64_t product_rows(int64_t m, int64_t rows, Operand<F> a, const F* b, int64_t b_row,
                            int64_t depth, F* out, int64_t out_row, bool accumulate, Shape shape) {
  for (; m + M <= rows; m += M) {
    const int64_t begin = shape.begin(m), last = shape.end(m + M),
                  end = last < depth ? last : depth;
    product_tile<F, M, NV>(a.data + m * a.row + begin * a.column, a.row, a.column,
                           b + begin * b_row, b_row, end - begin, out + m * out_row, out_row,
                           accumulate);
  }
  return m;
}

template <class F, int NV, class Shape>
inline void product_panel(int64_t rows, Operand<F> a, const F* b, int64_t b_row, int64_t depth,
                          F* out, int64_t out_row, bool accumulate, Shape shape) {
  constexpr int M = kManyRegisters ? (NV == 4 ? 6 : 8) : (NV == 2 ? 6 : 8);
  int64_t m = product_rows<F, M, NV>(0, rows, a, b, b_row, depth, out, out_row, accumulate, shape);
  m = product_rows<F, 4, NV>(m, rows, a, b, b_row, depth, out, out_row, accumulate, shape);
  m = product_rows<F, 2, NV>(m, rows, a, b, b_row, depth, out, out_row, accumulate, shape);
  product_rows<F, 1, NV>(m, rows, a, b, b_row, depth, out, out_row, accumulate, shape);
}

// out [rows, columns] (+)= a [rows, depth] b [depth, columns]; columns is a multiple of the lanes.
template <class F, class Shape = Full>
void product(int64_t rows, int64_t columns, int64_t depth, Operand<F> a, const F* b, int64_t b_row,
             F* out, int64_t out_row, bool accumulate, Shape shape = {}) {
  constexpr int W = kLanes<F>;
  int64_t n = 0;
  if constexpr (kManyRegisters)
    for (; n + 4 * W <= columns; n += 4 * W)
      product_panel<F, 4>(rows, a, b + n, b_row, depth, out + n, out_row, accumulate, shape);
  for (; n + 2 * W <= columns; n += 2 * W)
    product_panel<F, 2>(rows, a, b + n, b_row, depth, out + n, out_row, accumulate, shape);
  for (; n < columns; n += W)
    product_panel<F, 1>(rows, a, b + n, b_row, depth, out + n, out_row, accumulate, shape);
}

// out [columns, rows] = in [rows, columns]^T; both sizes are multiples of the lanes.
template <class F>
void transpose(const F* in, int64_t in_row, int64_t rows, int64_t columns, F* out,
               int64_t out_row) {
  constexpr int W = kLanes<F>;
  for (int64_t r = 0; r < rows; r += W)
    for (int64_t c = 0; c < columns; c += W)
      transpose_tile(in + r * in_row + c, in_row, out + c * out_row + r, out_row);
}

// Dot product over a multiple of the lanes.
template <class F> inline F dot(const F* a, const F* b, int64_t n) {
  Vec<F> total{};
  for (int64_t i = 0; i < n; i += kLanes<F>) total += load(a + i) * load(b + i);
  return sum<F>(total);
}

}  // namespace
}  // namespace lrnn::kernels::LRNN_ISA
