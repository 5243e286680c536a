#pragma once
#include "kernels/cuda/rwkv7/chunk.cuh"
#include "kernels/cuda/tile/unit_lower.cuh"

// A chunk's matrices of pairs of tokens.
namespace lrnn::kernels::cuda::rwkv7 {

// Sixteen tokens of one head, as numbers, and sums over keys of pairs of them. A block has two
// threads a key.
template <int kKeys> struct Chunk {
  static constexpr int kThreads = 2 * kKeys, kStride = kKeys + 8, kHalves = kKeys / 64;
  using Rows17 = float[kTokens + 1][kStride];
  enum Kind { kRk, kRw, kUk, kUw };
  using Square = float[kTokens][kTokens + 4];

  Rows17 r, kk, k, w;  // r with the scale; the last row is zero
  Rows17 sum;          // of logarithms of decays before a token; the last row is the chunk's
  Square pairs[4];     // Ark, Arw, Auk, Auw
  Square halves[kHalves == 1 ? 1 : 4];

  __device__ __forceinline__ float decay(int from, int to, int key) const {
    return __expf(sum[to][key] - sum[from][key]);
  }

  // Rows from memory, eight keys of a token a thread; `wide`: see lies_on_packs.
  __device__ __forceinline__ void load(const DiagonalInputs& p, int64_t b, int64_t h, int64_t first,
                                       bool wide) {
    const int t = threadIdx.x / (kKeys / 8), key = threadIdx.x % (kKeys / 8) * 8;
    const int n = first + t < p.T ? max(0, min(8, int(p.K) - key)) : 0;
    Pack<float> q_, k_, kk_, rate_, log_;
    const auto ask = [&](Pack<float>& x, Type type, const Rows& from) {
      x.load(type, from.data, n > 0 ? row_at(from, b, first + t, 0, h) + key : 0, n, wide);
    };
    ask(q_, p.type, p.q), ask(k_, p.type, p.k), ask(kk_, p.type, p.kk), ask(rate_, p.type, p.rate);
    ask(log_, Type::kFloat32, p.log_decay);
    float x[5][8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[0][i] = float(p.scale) * q_.get(p.type, i), x[1][i] = kk_.get(p.type, i);
      x[2][i] = k_.get(p.type, i), x[3][i] = rate_.get(p.type, i) * x[1][i];
      x[4][i] = fmaxf(log_.get(Type::kFloat32, i), kLeastLog);
    }
    float* const to[5] = {&r[t][key], &kk[t][key], &k[t][key], &w[t][key], &sum[t + 1][key]};
#pragma unroll
    for (int m = 0; m < 5; ++m)
#pragma unroll
      for (int i = 0; i < 8; i += 4)
        *reinterpret_cast<float4*>(to[m] + i) =
            make_float4(x[m][i], x[m][i + 1], x[m][i + 2], x[m][i + 3]);
  }

  // Then, all threads: sums of logarithms, pairs of tokens, and Auw to its T. Meets before and
  // after.
  __device__ __forceinline__ void fill() {
    __syncthreads();
    for (int i = threadIdx.x; i < int(sizeof(pairs) / 4); i += kThreads) (&pairs[0][0][0])[i] = 0;
    if (kHalves > 1)
      for (int i = threadIdx.x; i < int(sizeof(halves) / 4); i += kThreads)
        (&halves[0][0][0])[i] = 0;
    if (threadIdx.x < kKeys) {
      float x = 0;
      sum[0][threadIdx.x] = 0;
#pragma unroll
      for (int t = 1; t <= kTokens; ++t) sum[t][threadIdx.x] = x += sum[t][threadIdx.x];
    } else {
      kk[kTokens][threadIdx.x - kKeys] = 0;
    }
    __syncthreads();
    Square* const to = threadIdx.x < 128 ? pairs : halves;
    later_pairs(to);
    same_pairs(to);
    __syncthreads();
    if (kHalves > 1) {
      for (int i = threadIdx.x; i < int(sizeof(pairs) / 4); i += kThreads)
        (&pairs[0][0][0])[i] += (&halves[0][0][0])[i];
      __syncthreads();
    }
    if (threadIdx.x < 32) invert_unit_lower(pairs[kUw], int(threadIdx.x));
    __syncthreads();
  }

 private:
  // A query r_t or kk_(t+1) reads what k_s and w_s wrote, s < t: by halves of 8, 4, 2 and 1 tokens,
  // a warp each. Queries in the second half of a piece decay from the first half's last token on,
  // keys up to it, so that no factor is above 1 and nothing is divided by a decay.
  __device__ __forceinline__ void later_pairs(Square* to) const {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
    const int half = 8 >> warp % 4, piece = g / half * 2 * half, s = piece + g % half;
    const int t = s + half, middle = piece + half;  // `middle`: the row of `sum` between them
    float with_k[4] = {}, with_w[4] = {};
#pragma unroll
    for (int i = 0; i < 64; i += 16) {
      Fragment<2> a, b;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int key = warp / 4 * 64 + i + 8 * e + 2 * c;
        const auto pair = [key](const float* row) {
          return *reinterpret_cast<const float2*>(row + key);
        };
        const float2 at = pair(sum[t + 1]), m = pair(sum[middle]), from = pair(sum[s + 1]);
        const float2 down = make_float2(__expf(at.x - m.x), __expf(at.y - m.y)),
                     up = make_float2(__expf(m.x - from.x), __expf(m.y - from.y));
        const auto put = [](Fragment<2>& f, int reg, float2 x, float2 by) {
          uint32_t part[2];
          split(x.x * by.x, x.y * by.y, part);
          f.part[0][reg] = part[0], f.part[1][reg] = part[1];
        };
        put(a, 2 * e, pair(r[t]), down), put(a, 2 * e + 1, pair(kk[t + 1]), down);
        put(b, e, pair(k[s]), up), put(b, 2 + e, pair(w[s]), up);
      }
      multiply(with_k, with_w, a, b);
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int n = 2 * c + e, key = piece + n % half;
      if (n / half != g / half) continue;
      to[kRk][t][key] = with_k[e], to[kRw][t][key] = with_w[e];
      if (t + 1 >= kTokens) continue;
      to[kUk][t + 1][key] = with_k[2 + e], to[kUw][t + 1][key] = with_w[2 + e];
    }
  }

  // And s = t, where nothing decays.
  __device__ __forceinline__ void same_pairs(Square* to) const {
    const int i = threadIdx.x % 128, t = i / 8, kind = i / 2 % 4;
    const int key = int(threadIdx.x) / 128 * 64 + i % 2 * 32;
    const float *const query = (kind < kUk ? r[t] : kk[t + 1]) + key, *const with =
                                                                          (kind % 2 == 0 ? k[t]
                                                                                         : w[t]) +
                                                                          key;
    float x = 0;
#pragma unroll
    for (int n = 0; n < 32; n += 4) {
      float a[4], b[4];
      load_four(query + n, a), load_four(with + n, b);
#pragma unroll
      for (int u = 0; u < 4; ++u) x = fmaf(a[u], b[u], x);
    }
    x = sum_lanes<2>(x);
    const int row = kind < kUk ? t : t + 1;
    if (i % 2 == 0 && row < kTokens) to[kind][row][t] = x;
  }
};

}  // namespace lrnn::kernels::cuda::rwkv7
