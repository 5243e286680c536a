#pragma once
#include <type_traits>

#include "kernels/cuda/one_chunk.cuh"
#include "kernels/cuda/operand.cuh"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/rwkv7_chunk.h"
#include "kernels/cuda/unit_lower.cuh"

// What the kernels of rwkv7_chunk.h share: where things lie, and a chunk's matrices of pairs of
// tokens.
namespace lrnn::kernels::cuda::rwkv7 {

constexpr int kTokens = 16, kColumns = 64;  // of a chunk; of the values that a block walks

// Rows of 16 tokens.
template <int kKeys> using KeyRows = Operand<kTokens, kKeys, 2>;
using PairRows = Operand<kTokens, kTokens, 2>;
using ValueRows = Operand<kTokens, kColumns, 1>;

__host__ __device__ inline int64_t chunks_of(const DiagonalInputs& p) {
  return (p.T + kTokens - 1) / kTokens;
}
__host__ __device__ inline int64_t groups_of(const DiagonalInputs& p) {
  return (p.V + kColumns - 1) / kColumns;
}

// The matrices of one chunk in memory, two parts of each after the other, for the walk forward; the
// walk back needs those up to Qt alone.
template <int kKeys> struct Work {
  static constexpr int kRows = 2 * kTokens * kKeys * 2, kPairs = 2 * kTokens * kTokens * 2;
  static constexpr int kDecay = 0, kKp = kDecay + 4 * kKeys, kWe = kKp + kRows, kQt = kWe + kRows,
                       kBack = kQt + kRows, kKe = kBack, kAt = kKe + kRows, kBp = kAt + kPairs,
                       kAll = kBp + kPairs;
};

// States lie transposed, a row of keys for every value, in two parts. A row has its keys in the
// order in which the four threads that hold one have them, so that each writes one piece.
template <int kKeys> __host__ __device__ constexpr int place_of(int key) {
  return key % 8 / 2 * (kKeys / 4) + key / 8 * 2 + key % 2;
}
template <int kKeys> __host__ __device__ constexpr int64_t state_elements() {
  return 2 * kColumns * kKeys;
}

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

  // exp() of this is zero, and sums of it keep the digits of the others.
  static constexpr float kLeastLog = -100;

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

// A matrix in two parts, one after the other in memory, to shared memory by a block's threads.
template <int kThreads, int kRows, int kWidth>
__device__ __forceinline__ void fetch_parts(const Operand<kRows, kWidth, 2>& to, const void* from) {
  constexpr int kPieces = kWidth / 8;  // of 16 bytes, a row
  const uint32_t base = shared_address(to.base);
#pragma unroll
  for (int i = threadIdx.x; i < 2 * kRows * kPieces; i += kThreads)
    copy_async(base + i / kPieces * Operand<kRows, kWidth, 2>::kStride + i % kPieces * 16,
               static_cast<const unsigned char*>(from) + i * 16);
}

// Sixteen rows of 64 values from v0 on to shared memory, by 128 threads; zeros outside.
__device__ __forceinline__ void fetch_values(const ValueRows& to, const DiagonalInputs& p,
                                             const Rows& rows, int64_t b, int64_t h, int64_t first,
                                             int64_t v0, bool wide) {
  const int t = threadIdx.x / 8;
  const int64_t v = v0 + threadIdx.x % 8 * 8;
  const bool inside = rows.data && first + t < p.T && v < p.V;
  unsigned char* const at = to.base + t * ValueRows::kStride + threadIdx.x % 8 * 16;
  const uint16_t* const from =
      static_cast<const uint16_t*>(rows.data) + (inside ? row_at(rows, b, first + t, 0, h) + v : 0);
  if (wide && (!inside || v + 8 <= p.V)) {
    copy_async(shared_address(at), from, inside);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    reinterpret_cast<uint16_t*>(at)[i] = inside && v + i < p.V ? from[i] : uint16_t(0);
}

// 16 x 16 results [values from v on, tokens] to rows of tokens.
__device__ __forceinline__ void store_across(const float (&x)[2][4], const DiagonalInputs& p,
                                             const Rows& rows, int64_t b, int64_t h, int64_t first,
                                             int64_t v0) {
  one_chunk::each_across(as_fragment<1>(x[0], x[1]).part[0], [&](int t, int channel,
                                                                 uint32_t both) {
    const int64_t v = v0 + channel;
    if (first + t >= p.T || v >= p.V) return;
    uint16_t* const to = static_cast<uint16_t*>(rows.data) + row_at(rows, b, first + t, 0, h) + v;
    if (p.V % 2 == 0) {  // results are contiguous: no row begins on an odd element
      *reinterpret_cast<uint32_t*>(to) = both;
      return;
    }
    to[0] = uint16_t(both);
    if (v + 1 < p.V) to[1] = uint16_t(both >> 16);
  });
}

// One chunk of one head, in the order in which they lie.
struct Place {
  int64_t b, h, chunk, first;
  __device__ __forceinline__ Place(const DiagonalInputs& p, int64_t chunks) {
    const uint32_t head = blockIdx.x / uint32_t(chunks);
    chunk = blockIdx.x - head * uint32_t(chunks), first = chunk * kTokens;
    b = head / uint32_t(p.H), h = head - b * p.H;
  }
};

template <class F> void with_keys(const DiagonalInputs& p, F&& f) {
  rwkv7_chunk_keys(p) == 64 ? f(std::integral_constant<int, 64>())
                            : f(std::integral_constant<int, 128>());
}

inline unsigned blocks_of(int64_t blocks) {
  check(blocks < (int64_t(1) << 31), "[rwkv7] too many chunks for a grid");
  return unsigned(blocks);
}

inline bool keys_lie_on_packs(const DiagonalInputs& p) {
  return lies_on_packs(p.q, p.type) && lies_on_packs(p.k, p.type) && lies_on_packs(p.kk, p.type) &&
         lies_on_packs(p.rate, p.type) && lies_on_packs(p.log_decay, Type::kFloat32);
}

// The matrices of all chunks to `work`.
void prepare(const DiagonalInputs& p, bool backward, void* work, void* stream);

struct Sweep : DiagonalInputs {
  Rows values = {}, out = {};    // v and o; backward d_o, or null for zeros
  const float* begin = nullptr;  // [B,H,K,V], or null for zeros
  float* end = nullptr;          // or null where nobody asks
  const unsigned char* work = nullptr;
  uint16_t* states = nullptr;  // before each chunk in the order of the walk, or null
};
void sweep(const Sweep& p, bool backward, void* stream);

}  // namespace lrnn::kernels::cuda::rwkv7
