#pragma once
#include "kernels/cuda/delta_product/hopper.cuh"

// T and P of a chunk from the products K K^T and Q K^T in the accumulators of a warp group, 16 rows
// a warp, for bfloat16 operands. T = (I + L)^-1 in blocks of 16 x 16:
//
//   D_i = (I + L_ii)^-1         forward substitution in float32, a column a lane
//   T_jj = D_j,  T_ij = -D_i (sum of L_im T_mj over j <= m < i)
//
// Columns of blocks do not depend on each other: warp j has column j. It makes transposes,
// X_i = T_ij^T = -(sum of X_m L_im^T) D_i^T, whose left operands are its own last results, in
// registers, and whose right ones are rows of L and D_i. Numbers are in two bfloat16 parts. The
// warp with the longest column has the fewest rows below the diagonal to make.
//
// Preparation for the sweeps (hopper_prepare.cu) and the forward pass in one kernel
// (hopper_fused.cu) make the same bits with this.
namespace lrnn::kernels::cuda::squares {

constexpr int kBlockBytes = 16 * 16 * 2;                 // of one part
constexpr int kBlocksBytes = (6 + 4) * 2 * kBlockBytes;  // those of L below the diagonal, the D_i
constexpr int kDiagonalRow = 20, kDiagonalBytes = 4 * 16 * kDiagonalRow * 4;  // L_ii in float32

// ------------------------------------------------------------------------------------- vectors
// The decays of a chunk as powers of two of differences of sums of logarithms, two micro-steps a
// lane of one warp. Below 2^-150 nothing is left of a float32; sums stay so small that differences
// of what comes after are not lost. `lefts`: what is left of each at the end of its block of 16.
// `last`: the micro-step that query r reads after, or -1.
struct Pair {
  float beta[2], log[2];
};
template <class Last>
__device__ __forceinline__ void put_decays(float* vectors, float* logs, float* lefts, const Pair& x,
                                           float scale, Last&& last) {
  const int lane = threadIdx.x % 32;
  const auto log2_of = [](float log) {
    log *= 1.44269504f;
    return log < -150.f ? -150.f : log;  // and what is no number stays none
  };
  const float first = log2_of(x.log[0]);
  float sum = first + log2_of(x.log[1]);
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const float others = __shfl_up_sync(0xffffffffu, sum, d);
    if (lane >= d) sum += others;
  }
  const float before = __shfl_up_sync(0xffffffffu, sum, 1), all = __shfl_sync(0xffffffffu, sum, 31);
  const float2 log = make_float2(lane == 0 ? first : before + first, sum);
  const auto put = [&](float* to, float2 y) { reinterpret_cast<float2*>(to)[lane] = y; };
  put(logs, log);
  put(vectors + kBefore * kChunk, make_float2(exp2_of(log.x), exp2_of(log.y)));
  put(vectors + kAfter * kChunk, make_float2(exp2_of(all - log.x), exp2_of(all - log.y)));
  __syncwarp();
  const float end = logs[2 * lane | 15];
  put(lefts, make_float2(exp2_of(end - log.x), exp2_of(end - log.y)));
  float read[2];
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const int i = last(2 * lane + u);
    read[u] = i < 0 ? 0.f : scale * exp2_of(logs[i]);
  }
  put(vectors + kRead * kChunk, make_float2(read[0], read[1]));
}

// -------------------------------------------------------------------------------------- blocks
// Two parts of a 16 x 16 block, 32 bytes a row; halves of rows lie so that eight rows are in
// different banks.
struct Block {
  uint32_t at;
  static __device__ __forceinline__ uint32_t place(int row, int half) {
    return row * 32 + ((row / 4 ^ half) & 1) * 16;
  }
  // A(m,k) = M[m][k], B(k,n) = M[n][k], B(k,n) = M[k][n].
  __device__ __forceinline__ Fragment<2> a_rows() const {
    const int l = threadIdx.x % 32;
    return load<false>(place(l % 16, l / 16));
  }
  __device__ __forceinline__ Fragment<2> b_rows() const {
    const int l = threadIdx.x % 32;
    return load<false>(place(l % 8 + l / 16 * 8, l / 8 % 2));
  }
  __device__ __forceinline__ Fragment<2> b_columns() const {
    const int l = threadIdx.x % 32;
    return load<true>(place(l % 16, l / 16));
  }
  __device__ __forceinline__ void put(const Fragment<2>& a) const {
    const int l = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) stmatrix(at + i * kBlockBytes + place(l % 16, l / 16), a.part[i]);
  }

 private:
  template <bool kTransposed> __device__ __forceinline__ Fragment<2> load(uint32_t lane) const {
    Fragment<2> f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kTransposed)
        ldmatrix_transposed(f.part[i], at + i * kBlockBytes + lane);
      else
        ldmatrix(f.part[i], at + i * kBlockBytes + lane);
    }
    return f;
  }
};
// Those of a chunk: L_im for m < i, then D_i^T.
struct Blocks {
  uint32_t at;
  __device__ __forceinline__ Block below(int i, int m) const {
    return {at + (i * (i - 1) / 2 + m) * 2 * kBlockBytes};
  }
  __device__ __forceinline__ Block diagonal(int i) const {
    return {at + (6 + i) * 2 * kBlockBytes};
  }
};

// ------------------------------------------------------------------------------------- a chunk
template <bool kGates> struct Squares {
  using Products = float[8][4];      // this warp's 16 rows
  const float *beta, *logs, *lefts;  // of 64 micro-steps; the last two with a gate
  Blocks blocks;
  float* diagonals;  // room for L_ii
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;

  // Block b of the products times `by` and the decays to this lane's two rows at logs `to`.
  // kEarlier: the rows are behind this block, and the decay is that to its end and what is left
  // from there.
  template <bool kEarlier>
  __device__ __forceinline__ void decayed(Tile& x, const Products& A, int b, const float (&to)[2],
                                          const float (&by)[2]) const {
    float from_end[2] = {by[0], by[1]};
    if constexpr (kGates && kEarlier) {
      const float end = logs[b * 16 + 15];
#pragma unroll
      for (int u = 0; u < 2; ++u) from_end[u] *= exp2_of(to[u] - end);
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      float2 column = make_float2(0, 0);
      if constexpr (kGates)
        column =
            *reinterpret_cast<const float2*>((kEarlier ? lefts : logs) + b * 16 + t * 8 + 2 * c);
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const float one = u % 2 ? column.y : column.x;
        float factor = from_end[u / 2];
        if constexpr (kGates) factor *= kEarlier ? one : exp2_of(to[u / 2] - one);
        x[t][u] = A[2 * b + t][u] * factor;
      }
    }
  }

  // Rows of K K^T become L: blocks below the diagonal in two parts, that on it in float32.
  __device__ __forceinline__ void put_L(const Products& A) const {
    const int i = warp * 16 + g;
    const float by[2] = {beta[i], beta[i + 8]};
    float to[2] = {};
    if constexpr (kGates) to[0] = logs[i], to[1] = logs[i + 8];
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      if (b > warp) continue;
      Tile x;
      if (b < warp) {
        decayed<true>(x, A, b, to, by);
        blocks.below(warp, b).put(as_fragment<2>(x[0], x[1]));
      } else {
        decayed<false>(x, A, b, to, by);
        float* const at = diagonals + (warp * 16 + 2 * c) * kDiagonalRow + g;
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int u = 0; u < 4; ++u) at[(t * 8 + u % 2) * kDiagonalRow + u / 2 * 8] = x[t][u];
      }
    }
    __syncwarp();
  }
  // D of this warp's diagonal block: lane l has column l % 16, a row of the transpose, and takes a
  // column of L after the other, the next one on its way. The upper half of the warp stores what
  // rounding left.
  __device__ __forceinline__ void invert_diagonal() const {
    const float* const L = diagonals + warp * 16 * kDiagonalRow;
    const int column = lane % 16;
    float x[16], now[16], next[16];
    const auto fetch = [&](float(&to)[16], int m) {
#pragma unroll
      for (int r = 0; r < 16; r += 4)
        if (r + 3 > m) {
          const float4 four = *reinterpret_cast<const float4*>(L + m * kDiagonalRow + r);
          to[r] = four.x, to[r + 1] = four.y, to[r + 2] = four.z, to[r + 3] = four.w;
        }
    };
    fetch(now, 0);
#pragma unroll
    for (int r = 0; r < 16; ++r) x[r] = r == column ? 1.f : 0.f;
#pragma unroll
    for (int m = 0; m < 15; ++m) {
      if (m < 14) fetch(next, m + 1);
#pragma unroll
      for (int r = m + 1; r < 16; ++r) x[r] -= now[r] * x[m], now[r] = next[r];
    }
    uint32_t words[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      words[u] = pack(x[2 * u], x[2 * u + 1]);
      if (lane >= 16) words[u] = pack_lo(x[2 * u], x[2 * u + 1], words[u]);
    }
    const uint32_t to = blocks.diagonal(warp).at + lane / 16 * kBlockBytes;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      asm volatile(
          "st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(to + Block::place(column, half)),
          "r"(words[4 * half]), "r"(words[4 * half + 1]), "r"(words[4 * half + 2]),
          "r"(words[4 * half + 3])
          : "memory");
  }

  // Blocks of this warp's rows of Q K^T become those of P: put(b, x). `last`: the last micro-steps
  // that this lane's two rows see, or -1; `least`, `seen`: of the warp's first row and of any.
  template <class Put>
  __device__ __forceinline__ void make_P(const Products& A, const int (&last)[2], int least,
                                         int seen, float scale, Put&& put) const {
    const float by[2] = {scale, scale};
    float to[2] = {};
    if constexpr (kGates) to[0] = logs[max(last[0], 0)], to[1] = logs[max(last[1], 0)];
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      Tile x = {};
      if (b * 16 <= seen) {
        if (kGates && b * 16 + 15 <= least)
          decayed<true>(x, A, b, to, by);
        else
          decayed<false>(x, A, b, to, by);
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int u = 0; u < 4; ++u)
            if (b * 16 + t * 8 + 2 * c + u % 2 > last[u / 2]) x[t][u] = 0;
      }
      put(b, x);
    }
  }

  // Column `warp` of T, the blocks on and below the diagonal, to a swizzled tile.
  __device__ __forceinline__ void solve(uint32_t T) const {
    switch (warp) {
      case 0: return solve_column<0>(T);
      case 1: return solve_column<1>(T);
      case 2: return solve_column<2>(T);
      default: return solve_column<3>(T);
    }
  }

 private:
  // X_i = T_ij^T to its place in T.
  __device__ __forceinline__ void put_T(uint32_t T, int i, int j, const Fragment<2>& X) const {
    const int row = i * 16 + lane % 8 + lane / 16 * 8;
    stmatrix_transposed(T + swizzled(row, 2 * j + lane / 8 % 2), X.part[0]);
  }
  template <int j> __device__ __forceinline__ void solve_column(uint32_t T) const {
    Fragment<2> X[4 - j];
    X[0] = blocks.diagonal(j).a_rows();
    put_T(T, j, j, X[0]);
#pragma unroll
    for (int i = j + 1; i < 4; ++i) {
      Tile M = {}, Y = {};
#pragma unroll
      for (int m = j; m < i; ++m) multiply_small_first<2>(M, X[m - j], blocks.below(i, m).b_rows());
      multiply_small_first<2>(Y, as_fragment<2>(M[0], M[1]), blocks.diagonal(i).b_columns());
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) Y[t][u] = -Y[t][u];
      X[i - j] = as_fragment<2>(Y[0], Y[1]);
      put_T(T, i, j, X[i - j]);
    }
  }
};

}  // namespace lrnn::kernels::cuda::squares
