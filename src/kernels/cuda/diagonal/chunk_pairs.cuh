#pragma once
#include "kernels/cuda/diagonal/chunk.cuh"

// Decays of a chunk and products of its pairs of tokens (chunk.cuh), a key of 16 tokens a thread.
namespace lrnn::kernels::cuda {

using Sixteen = float[kGlaBlock];

// bfloat16 in pairs.
struct GlaBits {
  uint32_t pair[kGlaBlock / 2];
  // `from`: the key's first token.
  template <int kKeys> __device__ __forceinline__ void load(const uint16_t* from) {
#pragma unroll
    for (int t = 0; t < kGlaBlock; t += 2)
      pair[t / 2] = from[t * kKeys] | uint32_t(from[(t + 1) * kKeys]) << 16;
  }
  __device__ __forceinline__ float at(int t) const {
    return t % 2 ? high_of(pair[t / 2]) : low_of(pair[t / 2]);
  }
};

// Decays of a key's 16 tokens.
struct GlaDecays {
  Sixteen a;
  template <int kKeys> __device__ __forceinline__ void load(const float* log_decay) {
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) a[t] = fast_exp(log_decay[t * kKeys]);
  }
  // Up to each token from the beginning, itself included.
  __device__ __forceinline__ void from_begin(Sixteen& f) const {
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) f[t] = t > 0 ? f[t - 1] * a[t] : a[t];
  }
  // From each token to the end.
  __device__ __forceinline__ void to_end(Sixteen& f) const {
#pragma unroll
    for (int t = kGlaBlock - 1; t >= 0; --t) f[t] = t + 1 < kGlaBlock ? f[t + 1] * a[t + 1] : 1.f;
  }
  // Between each token and the middle of its piece of 2 kLevel.
  template <int kLevel> __device__ __forceinline__ void to_middle(Sixteen& f) const {
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t)
      if (t & kLevel) f[t] = t % kLevel ? f[t - 1] * a[t] : a[t];
#pragma unroll
    for (int t = kGlaBlock - 1; t >= 0; --t)
      if (!(t & kLevel)) f[t] = t % kLevel == kLevel - 1 ? 1.f : f[t + 1] * a[t + 1];
  }
};

// 16 tokens of a row.
template <class To>
__device__ __forceinline__ void put_tokens(const To& to, int row, int column, const Sixteen& x) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float y[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = x[8 * half + i];
    to.put_eight(row, column + 8 * half, y);
  }
}

// The decay of a block of 16 tokens, [kGlaBlocks][kKeys].
template <int kKeys> struct GlaWhole {
  const float* whole;
  __device__ __forceinline__ float before(int block, int key) const {
    float x = 1;
#pragma unroll
    for (int b = 0; b < kGlaBlocks - 1; ++b)
      if (b < block) x *= whole[b * kKeys + key];
    return x;
  }
  __device__ __forceinline__ float after(int block, int key) const {
    float x = 1;
#pragma unroll
    for (int b = 1; b < kGlaBlocks; ++b)
      if (b > block) x *= whole[b * kKeys + key];
    return x;
  }
  // Of the block between this one and the middle of the chunk.
  __device__ __forceinline__ float to_middle(int block, int key) const {
    return block == 0 ? whole[kKeys + key] : block == 3 ? whole[2 * kKeys + key] : 1.f;
  }
};

// A warp's product of its 32 keys at one level: A of the 16 tokens, where only the pairs that are
// cut at this level count. `near` has x, a row a key.
template <int kLevel>
__device__ __forceinline__ void add_level(Tile& A, const Operand<32, kGlaBlock, 2>& near) {
  Tile all = {};
#pragma unroll
  for (int key = 0; key < 32; key += 16) {
    const Fragment<2> x = near.a_columns(0, key);
#pragma unroll
    for (int product = 0; product < 3; ++product) {
      const uint32_t(&left)[4] = x.part[product == 0 ? 1 : 0];
      const uint32_t(&right)[4] = x.part[product == 1 ? 1 : 0];
      mma(all[0], left, right[0], right[2]);
      if (kLevel < 8) mma(all[1], left, right[1], right[3]);
    }
  }
  each([&](int t, int u, int row, int column) {
    const int apart = row ^ column;
    if (row > column && apart >= kLevel && apart < 2 * kLevel) A[t][u] = all[t][u];
  });
}
// A token with itself: nothing decays.
__device__ __forceinline__ void add_same(Tile& A, const Operand<32, kGlaBlock, 2>& near) {
  Tile all = {};
#pragma unroll
  for (int key = 0; key < 32; key += 16) {
    const Fragment<2> x = near.a_columns(0, key);
    mma(all[0], x.part[0], x.part[1][0], x.part[1][2]);
    mma(all[1], x.part[0], x.part[1][1], x.part[1][3]);
  }
  each([&](int t, int u, int row, int column) {
    if (row == column) A[t][u] = all[t][u];
  });
}
// q and k themselves where the two parts of a level lie.
__device__ __forceinline__ void put_same(const Operand<32, kGlaBlock, 2>& near, int lane,
                                         const GlaBits& q, const GlaBits& k) {
  using Near = Operand<32, kGlaBlock, 2>;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint4* const to = reinterpret_cast<uint4*>(near.base + lane * Near::kStride + half * 16);
    const auto four = [&](const GlaBits& x) {
      return make_uint4(x.pair[4 * half], x.pair[4 * half + 1], x.pair[4 * half + 2],
                        x.pair[4 * half + 3]);
    };
    to[0] = four(q), to[Near::kPlane / 16] = four(k);
  }
}

// Where the six blocks of A between different blocks of tokens are: two of level 16, four of 32.
struct GlaCross {
  int row, column;
  __device__ __forceinline__ explicit GlaCross(int n)
      : row(n == 0   ? 1
            : n == 1 ? 3
            : n < 4  ? 2
                     : 3),
        column(n == 0   ? 0
               : n == 1 ? 2
                        : n % 2) {}
};
template <int kKeys>
__device__ __forceinline__ void cross_pairs(Tile& A, const typename GlaShape<kKeys>::Keys& x,
                                            const GlaCross& of) {
#pragma unroll 2
  for (int key = 0; key < kKeys; key += 16)
    multiply(A[0], A[1], x.a_columns(of.row * kGlaBlock, key),
             x.b_columns(key, of.column * kGlaBlock));
}
__device__ __forceinline__ void put_pairs(const Operand<kGlaTokens, kGlaTokens, 2>& to,
                                          const Tile& A, int row, int column) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      to.put(row + g + 8 * half, column + 8 * t + 2 * c, A[t][2 * half], A[t][2 * half + 1]);
}

}  // namespace lrnn::kernels::cuda
