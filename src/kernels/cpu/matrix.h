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
// One that is read or written by whole rows.
template <class F> struct Matrix {
  F* data;
  int64_t row;
};
struct ProductSize {
  int64_t rows, columns, depth;
};

// out[m, :] (+)= sum_k a[m, k] b[k, :] for a tile of M rows and NV vectors.
template <class F, int M, int NV>
inline void product_tile(Operand<F> a, Matrix<const F> b, int64_t depth, Matrix<F> out,
                         bool accumulate) {
  constexpr int W = kLanes<F>;
  Vec<F> sum[M][NV];
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < NV; ++n)
      sum[m][n] = accumulate ? load(out.data + m * out.row + n * W) : Vec<F>{};
  for (int64_t k = 0; k < depth; ++k, a.data += a.column, b.data += b.row) {
    Vec<F> row[NV];
    for (int n = 0; n < NV; ++n) row[n] = load(b.data + n * W);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < NV; ++n) sum[m][n] += a.data[m * a.row] * row[n];
  }
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < NV; ++n) store(out.data + m * out.row + n * W, sum[m][n]);
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

template <class F, class Shape> struct Product {
  int64_t rows, depth;
  Operand<F> a;
  Matrix<const F> b;
  Matrix<F> out;
  bool accumulate;
  Shape shape;

  // As many tiles of M rows as there are from row m on; the result is the first row that is left.
  template <int M, int NV> inline int64_t tiles(int64_t m, int64_t column) const {
    for (; m + M <= rows; m += M) {
      const int64_t begin = shape.begin(m), last = shape.end(m + M),
                    end = last < depth ? last : depth;
      product_tile<F, M, NV>({a.data + m * a.row + begin * a.column, a.row, a.column},
                             {b.data + begin * b.row + column, b.row}, end - begin,
                             {out.data + m * out.row + column, out.row}, accumulate);
    }
    return m;
  }

  template <int NV> inline void panel(int64_t column) const {
    constexpr int M = kManyRegisters ? (NV == 4 ? 6 : 8) : (NV == 2 ? 6 : 8);
    int64_t m = tiles<M, NV>(0, column);
    m = tiles<4, NV>(m, column);
    m = tiles<2, NV>(m, column);
    tiles<1, NV>(m, column);
  }
};

// out [rows, columns] (+)= a [rows, depth] b [depth, columns]; columns is a multiple of the lanes.
template <class F, class Shape = Full>
void product(ProductSize size, Operand<F> a, Matrix<const F> b, Matrix<F> out, bool accumulate,
             Shape shape = {}) {
  constexpr int W = kLanes<F>;
  const Product<F, Shape> x{size.rows, size.depth, a, b, out, accumulate, shape};
  int64_t n = 0;
  if constexpr (kManyRegisters)
    for (; n + 4 * W <= size.columns; n += 4 * W) x.template panel<4>(n);
  for (; n + 2 * W <= size.columns; n += 2 * W) x.template panel<2>(n);
  for (; n < size.columns; n += W) x.template panel<1>(n);
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
