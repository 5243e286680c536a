#pragma once
#include "kernels/cuda/delta_product/hopper.cuh"

// What the two sweeps on Hopper share: one stage in shared memory, and where a block stands.
namespace lrnn::kernels::cuda {

// One stage, in bytes. `values`: rows of V forwards, of dO backwards. kPRows: rows of P in place.
template <int KT, int kRows, bool kSplit, int kValueRows, int kPRows, int kResults>
struct SweepLayout {
  static constexpr int k = 0, q = k + KT / 64 * kTileBytes, T = q + KT / 64 * kRows * 128,
                       T_lo = T + kTileBytes, P = T_lo + (kSplit ? 2 * kTileBytes : 0),
                       P_lo = P + kPRows * 128, values = P_lo + (kSplit ? kRows * 128 : 0);
  static __host__ __device__ int vectors(int columns) {
    return values + kValueRows * row_bytes(columns);
  }
  static __host__ __device__ int logs(int columns) {  // with a gate, where P is made here
    return vectors(columns) + kVectorCount * kChunk * 4;
  }
  static __host__ __device__ int bytes(int columns) {
    return (logs(columns) + kChunk * 4 + 1023) / 1024 * 1024;
  }
  // Behind the two stages, per warp group: kResults tiles of results, and scratch for the state or
  // its gradient, which in split mode takes the place of those tiles and of one for lo.
  static constexpr int kResult = kChunk * row_bytes(64), kState = 16 * KT * 2;
  static constexpr int kState0 = kSplit ? 0 : kResults * kResult;
  static constexpr int kOut =
      kState0 + 4 * kState > 2 * kResult ? kState0 + 4 * kState : 2 * kResult;
  static __host__ __device__ int all(int columns) {
    return 2 * bytes(columns) + columns / 64 * kOut + Pipeline::kBytes;
  }
};

// What a block makes: `count` columns from `first` on, of values or, for `unit`, of a map's M; and
// its shared memory.
struct Columns {
  int64_t first;
  int count;
  unsigned char* memory;
  bool unit = false;
};

// Where a block stands: a stretch of a sequence, a head, `columns` value channels from v_tile on,
// of which a warp has 16 from v0 on.
template <class Layout> struct Sweep {
  const Stretch& stretch;
  const DeltaProductInputs& p;
  unsigned char* memory;
  int columns;
  int64_t v_tile;
  const int own = threadIdx.x / 32 * 16;
  const int64_t h = stretch.h, head = stretch.s * p.H + h, v0 = v_tile + own;
  const Span span = span_of(p, stretch.s);
  const int64_t steps = span.length * p.N, slot0 = first_slot(p, stretch.s, kChunk);
  const int groups = columns / 64, stage_bytes = Layout::bytes(columns);

  __device__ __forceinline__ uint32_t pipeline() const {
    return shared_address(memory) + Layout::all(columns) - Pipeline::kBytes;
  }
  __device__ __forceinline__ bool fetches() const { return int(threadIdx.x) >= groups * 128; }
  __device__ __forceinline__ int rank() const { return threadIdx.x - groups * 128; }
  template <class R>
  __device__ __forceinline__ const uint16_t* rows(const R& x, bool any = true) const {
    return static_cast<const uint16_t*>(x.data) + (any ? row_at(x, span.b, span.t0, 0, h) : 0);
  }
  __device__ __forceinline__ int count(int64_t first) const {
    return int(min(int64_t(kChunk), steps - first));
  }
  // A chunk in arrays [slots,H,...].
  __device__ __forceinline__ int64_t item(int chunk) const { return (slot0 + chunk) * p.H + h; }
  // The first of this warp group's channels of a micro-step in [B,H,T,N,V].
  __device__ __forceinline__ int64_t error(int64_t first) const {
    return (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 - own % 64;
  }
  __device__ __forceinline__ uint32_t stage(int turn) const {
    return shared_address(memory) + turn % 2 * stage_bytes;
  }
  __device__ __forceinline__ const float* vectors(int turn) const {
    return reinterpret_cast<const float*>(memory + turn % 2 * stage_bytes +
                                          Layout::vectors(columns));
  }
  __device__ __forceinline__ const float* logs(int turn) const {
    return reinterpret_cast<const float*>(memory + turn % 2 * stage_bytes + Layout::logs(columns));
  }
  __device__ __forceinline__ uint32_t out() const {
    return shared_address(memory) + 2 * stage_bytes + threadIdx.x / 128 * Layout::kOut;
  }
  __device__ __forceinline__ uint32_t state_scratch() const {
    return out() + Layout::kState0 + threadIdx.x / 32 % 4 * Layout::kState;
  }
};

// The states between segments, or their gradients, of this block's columns.
template <int KT, bool kSplit> struct Between {
  float* states;
  int64_t K, V, v, v_tile;
  template <class At>
  __device__ __forceinline__ Between(const Segments& segments, const At& at)
      : states(segments.between),
        K(at.p.K),
        V(at.p.V),
        v(at.v0 + threadIdx.x % 32 / 4),
        v_tile(at.v_tile) {}

  __device__ __forceinline__ float* of(int64_t segment) const {
    return states + segment * (kSplit ? K : KT) * V;
  }
  template <class State> __device__ __forceinline__ void read(State& S, int64_t segment) const {
    if constexpr (kSplit)
      read_state(S, of(segment), K, V, v);
    else
      get_between(S, place_between<KT / 8>(of(segment), v_tile));
  }
  template <class State>
  __device__ __forceinline__ void write(const State& S, int64_t segment) const {
    if constexpr (kSplit)
      write_state(S, of(segment), K, V, v);
    else
      put_between(S, place_between<KT / 8>(of(segment), v_tile));
  }
};

// The logarithms of the decays up to each micro-step of a chunk, by the fetching group.
template <class Layout>
__device__ __forceinline__ void fetch_logs(const Sweep<Layout>& at, int turn, int chunk,
                                           const ChunkWork& w) {
  const int rank = at.rank();
  if (rank < kChunk / 4)
    copy_async(at.stage(turn) + Layout::logs(at.columns) + rank * 16,
               w.logs + at.item(chunk) * kChunk + rank * 4);
}

// Rows of `columns` values by the fetching group.
template <int kRows>
__device__ __forceinline__ void fetch_columns(int columns, int rank, uint32_t to,
                                              const uint16_t* from, int64_t step, int inside) {
  if (columns == 128)
    fetch_rows_by<128, kRows, kFetchers>(rank, to, from, step, inside);
  else
    fetch_rows_by<64, kRows, kFetchers>(rank, to, from, step, inside);
}

// P^T = scale A K Q^T where the query comes after the key, by a warp group: rows of a swizzled
// tile. Decays from one block of 16 micro-steps to another are cut at the end of the first, and all
// factors are multiplied in the order of hopper_squares.cuh, whose bits these are.
template <int KT, int kRows, bool kGate>
__device__ __forceinline__ void make_P(uint32_t to, uint32_t k, uint32_t q, const Queries& queries,
                                       float scale, [[maybe_unused]] const float* logs) {
  float x[kRows / 8][4];
  meet_group();  // all has come
  wgmma::fence();
  rows_by_rows<true, KT, kRows * 128>(x, k, q);
  wgmma::commit();
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 % 4 * 16, i = row0 + lane / 4;
  [[maybe_unused]] float log[2], left[2], end = 0;
  if constexpr (kGate) {
    end = logs[row0 + 15];
#pragma unroll
    for (int half = 0; half < 2; ++half)
      log[half] = logs[i + half * 8], left[half] = exp2_of(end - log[half]);
  }
  const auto last_of = [&](int r) {
    return r < queries.rows ? queries.place + r * queries.every : -1;
  };
  wgmma::wait<0>();
  wgmma::hold(x);
#pragma unroll
  for (int t = 0; t < kRows / 8; ++t) {
    [[maybe_unused]] const bool later = row0 + 15 <= last_of(t / 2 * 16);
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int last = last_of(t * 8 + lane % 4 * 2 + u);
      float by[2] = {scale, scale};
      if constexpr (kGate) {
        const float at = logs[max(last, 0)], from_end = exp2_of(at - end);
#pragma unroll
        for (int half = 0; half < 2; ++half)
          by[half] = later ? scale * from_end * left[half] : scale * exp2_of(at - log[half]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half)
        x[t][2 * half + u] = i + half * 8 <= last ? by[half] * x[t][2 * half + u] : 0.f;
    }
  }
  const uint32_t at = to + (row0 + lane % 16) * 128;
#pragma unroll
  for (int n = 0; n < kRows / 16; ++n) {
    const auto r = as_fragment<1>(x[2 * n], x[2 * n + 1]);
    stmatrix(at + (((2 * n + lane / 16) ^ lane) & 7) * 16, r.part[0]);
  }
}

}  // namespace lrnn::kernels::cuda
