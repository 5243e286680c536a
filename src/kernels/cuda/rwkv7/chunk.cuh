#pragma once
#include <type_traits>

#include "kernels/cuda/rwkv7/chunk.h"
#include "kernels/cuda/tile/operand.cuh"
#include "kernels/cuda/tile/pack.cuh"

// What the kernels of rwkv7/chunk.h share: where things lie, how they come and go, and products.
namespace lrnn::kernels::cuda::rwkv7 {

constexpr int kTokens = 16, kColumns = 64;  // of a chunk; of the values that a block walks

// exp() of this is zero, and sums of it keep the digits of the others.
constexpr float kLeastLog = -100;

using PairRows = Operand<kTokens, kTokens, 2>;
using ValueRows = Operand<kTokens, kColumns, 1>;
template <int kRows> using TokenColumns = Operand<kRows, kTokens, 2>;

__host__ __device__ inline int64_t chunks_of(const DiagonalInputs& p) {
  return (p.T + kTokens - 1) / kTokens;
}
__host__ __device__ inline int64_t groups_of(const DiagonalInputs& p) {
  return (p.V + kColumns - 1) / kColumns;
}

// The matrices of one chunk in memory: those of both walks, then those of the walk forward, or
// those that the gradients need. Where one thread has a column, columns of 16 tokens lie as rows,
// eight tokens of all of them, then the other eight, and then the same of the second parts.
template <int kKeys> struct Work {
  static constexpr int kRows = 2 * kTokens * kKeys * 2, kPairs = 2 * kTokens * kTokens * 2;
  static constexpr int kDecay = 0, kKp = kDecay + 4 * kKeys, kWe = kKp + kRows, kQt = kWe + kRows,
                       kKe = kQt + kRows, kAt = kKe + kRows, kBp = kAt + kPairs,
                       kForward = kBp + kPairs;
  static constexpr int kFourPairs = kQt + kRows,  // T, Ark, Arw, Auk
      kBackward = kFourPairs + 4 * kPairs;
};

// States lie transposed, a row of keys for every value, in two parts. A row has its keys in the
// order in which the four threads that hold one have them, so that each writes one piece.
template <int kKeys> __host__ __device__ constexpr int place_of(int key) {
  return key % 8 / 2 * (kKeys / 4) + key / 8 * 2 + key % 2;
}
template <int kKeys> __host__ __device__ constexpr int64_t state_elements() {
  return 2 * kColumns * kKeys;
}

// One row of tokens of those matrices.
template <int kRows>
__device__ __forceinline__ void store_tokens(unsigned char* to, int row,
                                             const float (&x)[kTokens]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t pair[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) split(x[8 * half + 2 * i], x[8 * half + 2 * i + 1], pair[i]);
#pragma unroll
    for (int part = 0; part < 2; ++part)
      reinterpret_cast<uint4*>(to)[(2 * part + half) * kRows + row] =
          make_uint4(pair[0][part], pair[1][part], pair[2][part], pair[3][part]);
  }
}
// All of them to shared memory, by a block's threads.
template <int kThreads, int kRows>
__device__ __forceinline__ void fetch_tokens(const TokenColumns<kRows>& to,
                                             const unsigned char* from) {
  using To = TokenColumns<kRows>;
  const uint32_t base = shared_address(to.base);
#pragma unroll
  for (uint32_t n = 0; n < (4 * kRows + kThreads - 1) / kThreads; ++n) {
    const uint32_t i = n * kThreads + threadIdx.x;
    if (4 * kRows % kThreads == 0 || i < 4 * kRows)
      copy_async(base + i / (2 * kRows) * To::kPlane + i % kRows * To::kStride + i / kRows % 2 * 16,
                 from + i * 16);
  }
}

// Sixteen rows of 64 values from v0 on to shared memory, by 128 threads; zeros outside. `head`: the
// first row of the head, or null.
__device__ __forceinline__ void fetch_values(const ValueRows& to, const uint16_t* head,
                                             int64_t token, int64_t first, int64_t v0,
                                             const DiagonalInputs& p, bool wide) {
  const uint32_t t = threadIdx.x / 8, column = threadIdx.x % 8 * 8;
  const int left =
      first + t < p.T && head ? int(min(p.V - v0, int64_t(kColumns))) - int(column) : 0;
  unsigned char* const at = to.base + t * ValueRows::kStride + 2 * column;
  const uint16_t* const from = left > 0 ? head + (first + t) * token + v0 + column : head;
  if (wide && (left <= 0 || left >= 8)) {
    copy_async(shared_address(at), from, left > 0);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) reinterpret_cast<uint16_t*>(at)[i] = i < left ? from[i] : uint16_t(0);
}

// 16 x 16 results [values from v0 on, tokens] to rows of tokens.
__device__ __forceinline__ void store_across(const float (&x)[2][4], uint16_t* head, int64_t token,
                                             int64_t first, int64_t v0, const DiagonalInputs& p) {
  const int left = int(min(p.V - v0, int64_t(16))), tokens = int(min(p.T - first, int64_t(16)));
  const bool even = p.V % 2 == 0;  // results are contiguous: no row begins on an odd element then
  uint16_t* const rows = head + first * token + v0;
  each_across(as_fragment<1>(x[0], x[1]).part[0], [&](int t, int v, uint32_t both) {
    if (t >= tokens || v >= left) return;
    uint16_t* const to = rows + t * token + v;
    if (even) {
      *reinterpret_cast<uint32_t*>(to) = both;
      return;
    }
    to[0] = uint16_t(both);
    if (v + 1 < left) to[1] = uint16_t(both >> 16);
  });
}

__device__ __forceinline__ uint16_t* head_of(const Rows& x, int64_t b, int64_t h) {
  return x.data ? static_cast<uint16_t*>(const_cast<void*>(static_cast<const void*>(x.data))) +
                      row_at(x, b, 0, 0, h)
                : nullptr;
}

// Calls f(part of a, part of b, n, tile of b_n) for the parts that count, in an order in which no
// product waits for the one before it.
template <int kParts, int kCount, class F> __device__ __forceinline__ void each_product(F&& f) {
#pragma unroll
  for (int i = 0; i < kParts; ++i)
#pragma unroll
    for (int j = 0; j < 2 - i; ++j)
#pragma unroll
      for (int n = 0; n < kCount; ++n)
#pragma unroll
        for (int side = 0; side < 2; ++side) f(i, j, n, side);
}
// x += the sum of a_n b_n, and x_n += a b_n.
template <int kCount>
__device__ __forceinline__ void add_products(float (&x)[2][4], const Fragment<2>* a,
                                             const Fragment<2> (&b)[kCount]) {
  float y[kCount][2][4] = {};
  each_product<2, kCount>([&](int i, int j, int n, int side) {
    mma(y[n][side], a[n].part[i], b[n].part[j][2 * side], b[n].part[j][2 * side + 1]);
  });
#pragma unroll
  for (int n = 0; n < kCount; ++n)
#pragma unroll
    for (int side = 0; side < 2; ++side)
#pragma unroll
      for (int i = 0; i < 4; ++i) x[side][i] += y[n][side][i];
}
template <int kCount, int kParts>
__device__ __forceinline__ void add_to_each(float (*x)[4], const Fragment<kParts>& a,
                                            const Fragment<2> (&b)[kCount]) {
  each_product<kParts, kCount>([&](int i, int j, int n, int side) {
    mma(x[2 * n + side], a.part[i], b[n].part[j][2 * side], b[n].part[j][2 * side + 1]);
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
size_t sweep_bytes(const DiagonalInputs& p);  // of shared memory

}  // namespace lrnn::kernels::cuda::rwkv7
