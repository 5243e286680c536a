#pragma once
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/tile/copy.cuh"
#include "kernels/cuda/tile/mma.cuh"

// A state of up to 32 x 32 in the registers of a warp: lane (i, j) = (lane / 8, lane % 8) holds
// rows 8i .. and columns 4j .. of it, so that a product with it reads few values from shared memory
// for each it multiplies. Inputs come in eight micro-steps at a time, the next ones on their way.
// A block is one warp, so that whatever is the same for the head is known to be the same for all
// threads: branches and addresses then cost little.
namespace lrnn::kernels::cuda::tile {

constexpr int kSide = 32, kRows = 8, kColumns = 4;
constexpr int kSteps = 8;  // micro-steps in a stage

using Block = float[kSteps][kSide];

__device__ __forceinline__ void read_rows(float (&x)[kRows], const float* from) {
  const int row = threadIdx.x / 8 * kRows;
  float four[4];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r % 4 == 0) load_four(from + row + r, four);
    x[r] = four[r % 4];
  }
}
__device__ __forceinline__ void read_columns(float (&x)[kColumns], const float* from) {
  load_four(from + threadIdx.x % 8 * kColumns, x);
}
__device__ __forceinline__ void store_four(float* to, const float (&x)[4]) {
  *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
}
__device__ __forceinline__ void store_one(float* to, float x) { *to = x; }
__device__ __forceinline__ void store_one(Bf16* to, float x) { to->bits = to_bf16(x); }
__device__ __forceinline__ void store_four(Bf16* to, const float (&x)[4]) {
  *reinterpret_cast<uint2*>(to) = make_uint2(pack(x[0], x[1]), pack(x[2], x[3]));
}

struct Tile {
  alignas(16) float x[kRows][kColumns];

  __device__ void read(const float* from, int K, int V) {
    const int row = threadIdx.x / 8 * kRows, column = threadIdx.x % 8 * kColumns;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[r][c] = 0;
      if (from && row + r < K && column < V) load_four(from + (row + r) * V + column, x[r]);
    }
  }
  __device__ void write(float* to, int K, int V) const {
    const int row = threadIdx.x / 8 * kRows, column = threadIdx.x % 8 * kColumns;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (row + r < K && column < V) store_four(to + (row + r) * V + column, x[r]);
  }
  // x^T k, every lane for its columns.
  __device__ __forceinline__ void along_rows(float (&y)[kColumns], const float (&k)[kRows]) const {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      y[c] = x[0][c] * k[0];
#pragma unroll
      for (int r = 1; r < kRows; ++r) y[c] += x[r][c] * k[r];
    }
#pragma unroll
    for (int d = 8; d < 32; d *= 2)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) y[c] += __shfl_xor_sync(0xffffffffu, y[c], d);
  }
  // x v, every lane for its rows and columns.
  __device__ __forceinline__ void across(float (&y)[kRows], const float (&v)[kColumns]) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      y[r] = x[r][0] * v[0];
#pragma unroll
      for (int c = 1; c < kColumns; ++c) y[r] += x[r][c] * v[c];
    }
  }
  // Row `lane` of x v.
  __device__ __forceinline__ float along_columns(const float (&v)[kColumns]) const {
    float y[kRows];
    across(y, v);
    return sum_rows(y);
  }
  // Of all lanes' sums of rows, that of row `lane`. At each step a lane keeps half of its rows'
  // sums and gives the other away.
  static __device__ __forceinline__ float sum_rows(float (&y)[kRows]) {
#pragma unroll
    for (int d = kRows / 2; d > 0; d /= 2) {
      const bool upper = threadIdx.x & d;
#pragma unroll
      for (int r = 0; r < d; ++r) {
        const float given = upper ? y[r] : y[r + d], kept = upper ? y[r + d] : y[r];
        y[r] = kept + __shfl_xor_sync(0xffffffffu, given, d);
      }
    }
    return y[0];
  }
  __device__ __forceinline__ void add(const float (&k)[kRows], const float (&v)[kColumns]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[r][c] += k[r] * v[c];
  }
  __device__ __forceinline__ void scale(float a) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) x[r][c] *= a;
  }
  __device__ float dot(const Tile& other) const {
    float sum = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sum += x[r][c] * other.x[r][c];
    return sum;
  }
};

// Row `lane` of a v - b w.
__device__ __forceinline__ float along_both(const Tile& a, const float (&v)[kColumns],
                                            const Tile& b, const float (&w)[kColumns]) {
  float y[kRows];
  a.across(y, v);
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kColumns; ++c) y[r] -= b.x[r][c] * w[c];
  return Tile::sum_rows(y);
}

// A head of a sequence.
struct Head {
  Span span;
  int64_t h, steps, error;  // error: where its rows begin in [B,H,T,N,:]

  __device__ Head(const DeltaProductInputs& p, int64_t head)
      : span(span_of(p, head / p.H)),
        h(head % p.H),
        steps(span.length * p.N),
        error(((span.b * p.H + h) * p.T + span.t0) * p.N) {}
  template <class E, class R> __device__ __forceinline__ E* rows(const R& x) const {
    return x.data ? static_cast<E*>(const_cast<void*>(static_cast<const void*>(x.data))) +
                        row_at(x, span.b, span.t0, 0, h)
                  : nullptr;
  }
  __device__ __forceinline__ int64_t beta_at(const DeltaProductInputs& p, int64_t m) const {
    return ((span.b * p.T + span.t0) * p.N + m) * p.H + h;
  }
  __device__ __forceinline__ int64_t gate_at(const DeltaProductInputs& p, int64_t t) const {
    return (span.b * p.T + span.t0 + t) * p.H + h;
  }
};

// The micro-steps of a stage. kSingle: every token has one.
template <bool kSingle> struct Walk {
  uint32_t first, N;
  int count;
  __device__ __forceinline__ Walk(int64_t first_, int64_t steps, int64_t N_)
      : first(uint32_t(first_)),
        N(uint32_t(N_)),
        count(int(min(int64_t(kSteps), steps - first_))) {}
  __device__ __forceinline__ uint32_t token(int i) const {
    return kSingle ? first + i : (first + i) / N;
  }
  __device__ __forceinline__ bool ends(int i, uint32_t t) const {
    return kSingle || first + i + 1 == (t + 1) * N;
  }
};

// Where lane's piece of row i goes; bfloat16 rows wait in the second half of their place.
template <class E> struct Piece {
  static constexpr int kElements = 16 / int(sizeof(E)), kInRow = kSide / kElements,
                       kRowsAtOnce = 32 / kInRow, kBegin = sizeof(E) == 2 ? 64 : 0;
  const int piece = threadIdx.x % kInRow, row = threadIdx.x / kInRow;

  // Calls f(i) for the rows of which this lane has a piece.
  template <class F> __device__ __forceinline__ void each_row(F&& f) const {
#pragma unroll
    for (int n = 0; n < kSteps / kRowsAtOnce; ++n) f(n * kRowsAtOnce + row);
  }
  // Its piece of row i, of `width` elements, is on its way; zeros where there is none.
  __device__ __forceinline__ void ask(Block& to, int i, const E* from, bool there,
                                      int width) const {
    copy_async(shared_address(to[i]) + kBegin + piece * 16, from,
               there && piece * kElements < width);
  }
};

template <class E, bool kSingle>
__device__ __forceinline__ void ask(Block& to, const E* from, const Walk<kSingle>& walk,
                                    int64_t token, int64_t step, int width) {
  const Piece<E> own;
  from += own.piece * own.kElements;
  own.each_row([&](int i) {
    const uint32_t t = walk.token(i), j = walk.first + i - t * walk.N;
    own.ask(to, i, from + t * token + (kSingle ? 0 : j * step), i < walk.count, width);
  });
}
// Rows that lie one after the other.
template <bool kSingle>
__device__ __forceinline__ void ask_even(Block& to, const float* from, const Walk<kSingle>& walk,
                                         int64_t step, int width) {
  const Piece<float> own;
  from += (walk.first + own.row) * step + own.piece * own.kElements;
  own.each_row([&](int i) { own.ask(to, i, from + (i - own.row) * step, i < walk.count, width); });
}
// Rows that tokens have, at their last micro-step.
template <class E, bool kSingle>
__device__ __forceinline__ void ask_where_tokens_end(Block& to, const E* from,
                                                     const Walk<kSingle>& walk, int64_t token,
                                                     int width) {
  const Piece<E> own;
  from += own.piece * own.kElements;
  own.each_row([&](int i) {
    const uint32_t t = walk.token(i);
    if (walk.ends(i, t)) own.ask(to, i, from + t * token, i < walk.count, width);
  });
}

// Rows that came as bfloat16 become float32 in place.
template <class E, class... Blocks> __device__ __forceinline__ void unpack(Blocks&... blocks) {
  if constexpr (sizeof(E) == 2) {
    const int piece = threadIdx.x % 4, row = threadIdx.x / 4;
    uint4 raw[sizeof...(Blocks)];
    int n = 0;
    ((raw[n++] = *reinterpret_cast<const uint4*>(&blocks[row][16 + piece * 4])), ...);
    __syncwarp();
    n = 0;
    const auto put = [&](Block& to) {
      const uint4 x = raw[n++];
      float4* const at = reinterpret_cast<float4*>(&to[row][piece * 8]);
      at[0] = make_float4(low_of(x.x), high_of(x.x), low_of(x.y), high_of(x.y));
      at[1] = make_float4(low_of(x.z), high_of(x.z), low_of(x.w), high_of(x.w));
    };
    (put(blocks), ...);
    __syncwarp();
  }
}

// beta and the gate of a stage, one micro-step a lane, on their way in registers.
struct Scalars {
  float beta = 0, log_gate = 0;
  template <bool kSingle>
  __device__ __forceinline__ void ask(const DeltaProductInputs& p, const Head& at,
                                      const Walk<kSingle>& walk) {
    const int i = threadIdx.x;
    if (i >= walk.count) return;
    beta = static_cast<const float*>(p.beta)[at.beta_at(p, walk.first + i)];
    if (p.log_gate) log_gate = static_cast<const float*>(p.log_gate)[at.gate_at(p, walk.token(i))];
  }
  __device__ __forceinline__ void put(float (&betas)[kSteps], float (&gates)[kSteps]) const {
    const int i = threadIdx.x;
    if (i < kSteps) betas[i] = beta, gates[i] = expf(log_gate);
  }
};

}  // namespace lrnn::kernels::cuda::tile
