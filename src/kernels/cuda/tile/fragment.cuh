#pragma once
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/tile/mma.cuh"

// Operands of mma.sync in registers. A number is the sum of kParts bfloat16, each what rounding to
// those before it lost: one has 8 binary digits, two (hi and lo) have 16, three all 24 of a
// float32.
namespace lrnn::kernels::cuda {

// Two neighbouring numbers in their parts.
template <int kParts>
__device__ __forceinline__ void split(float low, float high, uint32_t (&part)[kParts]) {
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    part[i] = pack(low, high);
    if (i + 1 < kParts) low -= low_of(part[i]), high -= high_of(part[i]);
  }
}

// 16 x 16 numbers in four words, as A or as two tiles of B; in two words one tile of B.
template <int kParts, int kWords = 4> struct Fragment {
  uint32_t part[kParts][kWords];

  __device__ __forceinline__ Fragment<kParts, 2> tile(int n) const {  // of B
    Fragment<kParts, 2> f;
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      f.part[i][0] = part[i][2 * n], f.part[i][1] = part[i][2 * n + 1];
    return f;
  }
  __device__ __forceinline__ Fragment<1, kWords> only(int i) const {  // one part
    Fragment<1, kWords> f;
#pragma unroll
    for (int u = 0; u < kWords; ++u) f.part[0][u] = part[i][u];
    return f;
  }
  // Word u from two neighbouring numbers.
  __device__ __forceinline__ void set(int u, float low, float high) {
    uint32_t word[kParts];
    split(low, high, word);
#pragma unroll
    for (int i = 0; i < kParts; ++i) part[i][u] = word[i];
  }
};

// Two tiles of results side by side as an operand.
template <int kParts>
__device__ __forceinline__ Fragment<kParts> as_fragment(const float (&left)[4],
                                                        const float (&right)[4]) {
  Fragment<kParts> f;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const float(&x)[4] = r < 2 ? left : right;
    f.set(r, x[r % 2 * 2], x[r % 2 * 2 + 1]);
  }
  return f;
}
template <int kParts, int kSteps>
__device__ __forceinline__ void as_fragments(Fragment<kParts> (&f)[kSteps],
                                             const float (&x)[2 * kSteps][4]) {
#pragma unroll
  for (int k = 0; k < kSteps; ++k) f[k] = as_fragment<kParts>(x[2 * k], x[2 * k + 1]);
}

// A fragment A(m,k) times x(k), k = 2c, 2c+1, 2c+8, 2c+9.
template <int kTo, int kFrom>
__device__ __forceinline__ Fragment<kTo> times_columns(const Fragment<kFrom>& a,
                                                       const float (&x)[4]) {
  Fragment<kTo> f;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    float low = 0, high = 0;
#pragma unroll
    for (int i = kFrom - 1; i >= 0; --i) low += low_of(a.part[i][r]), high += high_of(a.part[i][r]);
    f.set(r, low * x[r / 2 * 2], high * x[r / 2 * 2 + 1]);
  }
  return f;
}

// The same for one part, x(2c), x(2c+1) and y = x(2c+8), x(2c+9).
template <int kTo>
__device__ __forceinline__ Fragment<kTo> times_columns(const Fragment<1>& a, float2 x, float2 y) {
  Fragment<kTo> f;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const float2 by = r < 2 ? x : y;
    f.set(r, by.x * low_of(a.part[0][r]), by.y * high_of(a.part[0][r]));
  }
  return f;
}

// An 8 x 8 of a fragment to its transpose.
__device__ __forceinline__ uint32_t transposed(uint32_t x) {
  uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n" : "=r"(y) : "r"(x));
  return y;
}

using Tile = float[2][4];  // 16 x 16 results
// Calls f(t, u, row, column) for the values x[t][u] that this lane has of them.
template <class F> __device__ __forceinline__ void each(F&& f) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) f(t, u, g + u / 2 * 8, t * 8 + 2 * c + u % 2);
}
// One part of a fragment [16 channels, 16 tokens] as rows of tokens: f(row, channel, word), the
// word two neighbouring channels.
template <class F> __device__ __forceinline__ void each_across(const uint32_t (&a)[4], F&& f) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int u = 0; u < 4; ++u) f(u / 2 * 8 + g, u % 2 * 8 + 2 * c, transposed(a[u]));
}

// Rows g and g+8 of tiles of results times a factor each.
template <int kTiles>
__device__ __forceinline__ void scale_rows(float (&x)[kTiles][4], float upper, float lower) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
    x[t][0] *= upper, x[t][1] *= upper, x[t][2] *= lower, x[t][3] *= lower;
}
// The dot of row g (half = 0) or g+8 with one of bfloat16, two columns of it from pair(t); all four
// lanes of a row get it.
template <int kTiles, class Pair>
__device__ __forceinline__ float row_dot(const float (&x)[kTiles][4], int half, Pair&& pair) {
  float sum = 0;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const uint32_t y = pair(t);
    sum += x[t][2 * half] * low_of(y) + x[t][2 * half + 1] * high_of(y);
  }
  return sum_lanes<4>(sum);
}

// Two neighbouring tiles of results += A B. Products of parts that are too small to be seen are
// left out.
template <int kA, int kB>
__device__ __forceinline__ void multiply(float (&left)[4], float (&right)[4], const Fragment<kA>& a,
                                         const Fragment<kB>& b) {
  constexpr int kMost = kA > kB ? kA : kB;
#pragma unroll
  for (int i = 0; i < kA; ++i)
#pragma unroll
    for (int j = 0; j < kB; ++j) {
      if (i + j >= kMost) continue;
      mma(left, a.part[i], b.part[j][0], b.part[j][1]);
      mma(right, a.part[i], b.part[j][2], b.part[j][3]);
    }
}

// Calls f(i, j) for the products of parts i + j < kSeen, the small ones first.
template <int kA, int kB, int kSeen, class F> __device__ __forceinline__ void each_product(F&& f) {
#pragma unroll
  for (int sum = (kSeen < kA + kB - 1 ? kSeen : kA + kB - 1) - 1; sum >= 0; --sum)
#pragma unroll
    for (int i = 0; i <= sum; ++i)
      if (i < kA && sum - i < kB) f(i, sum - i);
}
// The same sums from those.
template <int kSeen = 4, int kA, int kB>
__device__ __forceinline__ void multiply_small_first(float (&c)[4], const Fragment<kA>& a,
                                                     const Fragment<kB, 2>& b) {
  each_product<kA, kB, kSeen>([&](int i, int j) { mma(c, a.part[i], b.part[j][0], b.part[j][1]); });
}
template <int kSeen = 4, int kA, int kB>
__device__ __forceinline__ void multiply_small_first(Tile& c, const Fragment<kA>& a,
                                                     const Fragment<kB>& b) {
  each_product<kA, kB, kSeen>([&](int i, int j) {
    mma(c[0], a.part[i], b.part[j][0], b.part[j][1]);
    mma(c[1], a.part[i], b.part[j][2], b.part[j][3]);
  });
}

// Rows of bfloat16 in shared memory, and 16 x 16 of them as fragments: A(m,k) = M[m][k] and
// M[k][m], B(k,n) = M[n][k] and M[k][n], from the corner given.
struct Matrix {
  uint32_t base;
  int row;  // bytes
  __device__ __forceinline__ uint32_t at(int i, int j) const { return base + i * row + j * 2; }
  __device__ __forceinline__ Fragment<1> a_rows(int m, int k) const {
    return load<false>(at(m, k) + lane_transposed(row));
  }
  __device__ __forceinline__ Fragment<1> a_columns(int m, int k) const {
    return load<true>(at(k, m) + lane_direct(row));
  }
  __device__ __forceinline__ Fragment<1> b_rows(int k, int n) const {
    return load<false>(at(n, k) + lane_direct(row));
  }
  __device__ __forceinline__ Fragment<1> b_columns(int k, int n) const {
    return load<true>(at(k, n) + lane_transposed(row));
  }

 private:
  template <bool kTransposed> static __device__ __forceinline__ Fragment<1> load(uint32_t at) {
    Fragment<1> f;
    kTransposed ? ldmatrix_transposed(f.part[0], at) : ldmatrix(f.part[0], at);
    return f;
  }
};
__device__ __forceinline__ Fragment<2> join_parts(const Fragment<1>& hi, const Fragment<1>& lo) {
  Fragment<2> f;
#pragma unroll
  for (int u = 0; u < 4; ++u) f.part[0][u] = hi.part[0][u], f.part[1][u] = lo.part[0][u];
  return f;
}
// The same of rows that are split in two matrices.
struct SplitMatrix {
  Matrix hi, lo;
  __device__ __forceinline__ Fragment<2> a_rows(int m, int k) const {
    return join_parts(hi.a_rows(m, k), lo.a_rows(m, k));
  }
  __device__ __forceinline__ Fragment<2> a_columns(int m, int k) const {
    return join_parts(hi.a_columns(m, k), lo.a_columns(m, k));
  }
  __device__ __forceinline__ Fragment<2> b_rows(int k, int n) const {
    return join_parts(hi.b_rows(k, n), lo.b_rows(k, n));
  }
  __device__ __forceinline__ Fragment<2> b_columns(int k, int n) const {
    return join_parts(hi.b_columns(k, n), lo.b_columns(k, n));
  }
};

}  // namespace lrnn::kernels::cuda
