#pragma once
#include "kernels/cuda/delta_product/chunk_layout.cuh"

// What the two sweeps on mma.sync share: one stage in shared memory, where a block stands, and the
// products with what lies there. A warp keeps 16 columns of the state (or of its gradient) as rows
// of its transpose.
namespace lrnn::kernels::cuda {

template <int KT, bool kSplit, bool kForward> struct ChunkSweep {
  static constexpr int kTiles = KT / 8, kParts = kSplit ? 2 : 1;
  using State = float[kTiles][4];  // rows v0+g, v0+g+8 and key channels 8t+2c, +1
  const DeltaProductInputs& p;
  const ChunkWork& w;
  const Rows& values;  // V or dO
  unsigned char* memory;
  const SweepSize& size;
  const int columns = size.columns;
  const StageLayout layout{KT, w.rows, kForward ? kChunk : w.rows, columns, kSplit};
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, own = threadIdx.x / 32 * 16;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H), head = s * p.H + h;
  const int64_t v_tile = int64_t(blockIdx.y) * columns, v0 = v_tile + own;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, slot0 = first_slot(p, s, kChunk);
  const int chunks = int((steps + kChunk - 1) / kChunk);
  // Found once: multiplying out a row's place again for every chunk would be seen.
  const uint16_t *const k_rows = rows(p.k), *const q_rows = rows(p.q),
                        *const value_rows = rows(values) + v_tile;

  template <class R> __device__ __forceinline__ const uint16_t* rows(const R& x) const {
    return static_cast<const uint16_t*>(x.data) + (x.data ? row_at(x, span.b, span.t0, 0, h) : 0);
  }
  __device__ __forceinline__ int count(int64_t first) const {
    return int(min(int64_t(kChunk), steps - first));
  }
  __device__ __forceinline__ int64_t item(int chunk) const { return (slot0 + chunk) * p.H + h; }
  __device__ __forceinline__ int64_t state_row(int chunk) const {  // in [slots,H,V,K]
    return (item(chunk) * p.V + v0 + g) * p.K + 2 * c;
  }
  __device__ __forceinline__ int64_t error_row(int64_t first) const {  // in [B,H,T,N,V]
    return (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 + (g & ~1);
  }

  // Asks for a chunk.
  __device__ __forceinline__ void fetch(int chunk) const {
    const int64_t first = int64_t(chunk) * kChunk, at = item(chunk);
    const int count = this->count(first);
    const uint32_t stage = shared_address(memory) + (chunk & 1) * size.next_stage;
    fetch_rows<KT>(stage + layout.k, k_rows + first * p.k.step, p.k.step, kChunk, count, int(p.K));
    if constexpr (kForward)
      fetch_rows(Matrix{stage + layout.values, row_bytes(columns)},
                 value_rows + first * values.step, values.step, kChunk, count, int(p.V - v_tile));
    fetch_square(stage + layout.T, w.T + at * kChunk * kChunk, kChunk);
    if (kSplit)
      fetch_square(stage + layout.T_lo, w.T_lo + at * 2 * kChunk * kChunk,
                   lo_parts_of_T(KT) * kChunk);
    if (p.q.data) {
      const Queries queries(p, first, count);
      fetch_rows<KT>(stage + layout.q, q_rows + queries.token * p.q.token, p.q.token, w.rows,
                     queries.rows, int(p.K));
      if constexpr (!kForward)
        fetch_rows(Matrix{stage + layout.values, row_bytes(columns)},
                   value_rows + queries.token * values.token, values.token, w.rows, queries.rows,
                   int(p.V - v_tile));
      fetch_square(stage + layout.P, w.P + at * w.rows * kChunk, w.rows);
      if (kSplit) fetch_square(stage + layout.P_lo, w.P_lo + at * w.rows * kChunk, w.rows);
    }
    fetch_vectors(stage + layout.vectors, w.vectors + at * kVectorCount * kChunk);
  }
  // Asks for `next`, while the chunk before it is there or once the block is done with that; every
  // time also when there is none, because `arrived` counts.
  __device__ __forceinline__ void fetch_beside(int next) const {
    if (size.next_stage != 0 && next >= 0 && next < chunks) fetch(next);
    copy_commit();
  }
  __device__ __forceinline__ void done(int next) const {
    __syncthreads();
    if (size.next_stage != 0) return;
    if (next >= 0 && next < chunks) fetch(next);
    copy_commit();
  }
  // What was asked for has come, for the whole block; what was asked for last may be on its way.
  struct Arrived {
    uint32_t stage;
    const float* vectors;
    int64_t first;
  };
  __device__ __forceinline__ Arrived arrived(int chunk) const {
    copy_wait<1>();
    __syncthreads();
    const unsigned char* const here = memory + (chunk & 1) * size.next_stage;
    return {shared_address(here), reinterpret_cast<const float*>(here + layout.vectors),
            int64_t(chunk) * kChunk};
  }
  // A matrix of the stage: keys or queries, T or P, values.
  __device__ __forceinline__ Matrix keys(uint32_t stage, int at) const {
    return {stage + at, row_bytes(KT)};
  }
  __device__ __forceinline__ Matrix square(uint32_t stage, int at) const {
    return {stage + at, row_bytes(kChunk)};
  }

  // From and to float32 [K,V].
  __device__ __forceinline__ void read_state(State& S, const void* states) const {
    const float* const from =
        states ? static_cast<const float*>(states) + head * p.K * p.V : nullptr;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int64_t k = t * 8 + 2 * c + u % 2, v = v0 + g + u / 2 * 8;
        S[t][u] = from && k < p.K && v < p.V ? from[k * p.V + v] : 0.f;
      }
  }
  __device__ __forceinline__ void write_state(const State& S, void* states) const {
    float* const to = static_cast<float*>(states) + head * p.K * p.V;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int64_t k = t * 8 + 2 * c + u % 2, v = v0 + g + u / 2 * 8;
        if (k < p.K && v < p.V) to[k * p.V + v] = S[t][u];
      }
  }

  // e = D / beta.
  __device__ __forceinline__ void keep_error(const float (&D)[8][4], int64_t first,
                                             const float* beta, void* error) const {
    const int64_t to = error_row(first);
    const int count = this->count(first);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const int i = t * 8 + 2 * c + (g & 1);
      const float by = 1 / beta[i];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 e = neighbours(D[t][2 * half], D[t][2 * half + 1]);
        if (i >= count) continue;
        const int64_t at = to + i * p.V + half * 8;
        uint32_t part[kParts];
        split(by * e.x, by * e.y, part);
        *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(error) + at) = part[0];
        if constexpr (kSplit) *reinterpret_cast<uint32_t*>(w.error_lo + at) = part[1];
      }
    }
  }
  // Micro-steps 8t .. 8t+7 of dV.
  __device__ __forceinline__ void store_dv_tile(const float (&x)[4], int t, int64_t first,
                                                const Rows& dv) const {
    const int i = t * 8 + 2 * c + (g & 1);
    const int64_t to = row_at(dv, span.b, span.t0, 0, h) + (first + i) * dv.step + v0 + (g & ~1);
    uint16_t* const to_lo = w.dv_lo + error_row(first) + i * p.V;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 y = neighbours(x[2 * half], x[2 * half + 1]);
      if (i >= count(first) || v0 >= p.V) continue;
      uint32_t part[kParts];
      split(y.x, y.y, part);
      *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(dv.data) + to + half * 8) = part[0];
      if constexpr (kSplit) *reinterpret_cast<uint32_t*>(to_lo + half * 8) = part[1];
    }
  }

  // acc += S M^T for the first 16 kN rows M of keys or queries.
  template <int kN>
  __device__ __forceinline__ void over_keys(float (&acc)[2 * kN][4], const State& S,
                                            const Matrix& M) const {
#pragma unroll
    for (int k = 0; k < KT / 16; ++k) {
      const auto a = as_fragment<kParts>(S[2 * k], S[2 * k + 1]);
#pragma unroll
      for (int n = 0; n < kN; ++n)
        multiply(acc[2 * n], acc[2 * n + 1], a, M.b_rows(k * 16, n * 16));
    }
  }
  // S += A M for 16 rows M.
  __device__ __forceinline__ void add_rows(State& S, const Fragment<kParts>& a, const Matrix& M,
                                           int row) const {
#pragma unroll
    for (int t = 0; t < kTiles; t += 2) multiply(S[t], S[t + 1], a, M.b_columns(row, t * 8));
  }
  // Two tiles of results += A T, where load(place) has the 16 x 16 of T.
  template <class Load>
  __device__ __forceinline__ void times_T(float (&left)[4], float (&right)[4],
                                          const Fragment<kParts>& a, Load&& load) const {
    multiply(left, right, a, load(layout.T));
    if constexpr (kSplit) multiply(left, right, a, load(layout.T_lo));
    if constexpr (kSplit && lo_parts_of_T(KT) == 2)
      multiply(left, right, a.only(0), load(layout.T_lo + kChunk * row_bytes(kChunk)));
  }
  // D = T R, where times(left, right, a, k, n) adds A times the 16 x 16 of T at k and n to two
  // tiles.
  template <class Times>
  __device__ __forceinline__ static void times_triangle(float (&D)[8][4], const float (&R)[8][4],
                                                        Times&& times) {
    Fragment<kParts> a[4];
    as_fragments(a, R);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int u = 0; u < 4; ++u) D[2 * n][u] = D[2 * n + 1][u] = 0;
#pragma unroll
      for (int k = 0; k <= n; ++k)  // T is triangular
        times(D[2 * n], D[2 * n + 1], a[k], k * 16, n * 16);
    }
  }
  // What a thread then has of a query's outputs, from a tile of them; all lanes of a warp ask.
  struct Outputs {
    float2 upper, lower;
    __device__ __forceinline__ explicit Outputs(const float (&x)[4])
        : upper(neighbours(x[0], x[1])), lower(neighbours(x[2], x[3])) {}
    __device__ __forceinline__ void store(uint16_t* row) const {
      *reinterpret_cast<uint32_t*>(row) = pack(upper.x, upper.y);
      *reinterpret_cast<uint32_t*>(row + 8) = pack(lower.x, lower.y);
    }
  };
};

}  // namespace lrnn::kernels::cuda
