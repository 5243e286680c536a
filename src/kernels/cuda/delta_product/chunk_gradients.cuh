#pragma once
#include "kernels/cuda/delta_product/chunk_layout.cuh"
#include "kernels/cuda/delta_product/decays.cuh"

// What chunk_gradients.cu needs of a chunk: where it lies, in memory and in shared memory, and how
// it gets there.
namespace lrnn::kernels::cuda {

// Where a chunk lies, and this warp's rows and columns of it.
template <int KC, int kGroups, bool kSplit> struct GradientChunk {
  static constexpr int kParts = kSplit ? 2 : 1;
  static constexpr int kOwn = KC / kGroups, kTiles = kOwn / 8;                   // key channels
  static constexpr int kAcross = kChunk / (kGroups / 2), kXTiles = kAcross / 8;  // of X or E
  const DeltaProductBackward& p;
  const ChunkWork& w;
  const uint16_t* dstates;
  unsigned char* memory;
  const GradientSize& size;
  Slot at;
  const int columns = size.columns;
  const int tiles = int((p.V + columns - 1) / columns);
  const GradientLayout layout{KC, w.rows, columns, p.log_gate != nullptr, kSplit};
  const uint32_t base = shared_address(memory);
  const int64_t h = blockIdx.x % unsigned(p.H), head = blockIdx.x;
  const Span span = span_of(p, at.s);
  const Queries queries{p, at.first, at.count};
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, row0 = threadIdx.x / 32 % 4 * 16;
  const int group = threadIdx.x / 128, own = group * kOwn;
  const bool is_E = group >= kGroups / 2, has_row = row0 < w.rows && p.q.data;
  const int across = group % (kGroups / 2) * kAcross;

  __device__ __forceinline__ const float* vector(Vector which) const {
    return reinterpret_cast<const float*>(memory + layout.vectors) + which * kChunk;
  }
  __device__ __forceinline__ Decays& decays() const {
    return *reinterpret_cast<Decays*>(memory + layout.decays);
  }
  __device__ __forceinline__ int stage(int tile) const {
    return layout.stages + (tile & 1) * size.next_stage;
  }
  __device__ __forceinline__ Matrix keys(int at) const { return {base + at, row_bytes(KC)}; }
  __device__ __forceinline__ Matrix square(int at) const { return {base + at, row_bytes(kChunk)}; }
  __device__ __forceinline__ Matrix values(int at) const { return {base + at, row_bytes(columns)}; }
  template <class R> __device__ __forceinline__ int64_t query_row(const R& x) const {
    return row_at(x, span.b, span.t0 + queries.token, 0, h);
  }
  template <class R> __device__ __forceinline__ int64_t step_row(const R& x) const {
    return row_at(x, span.b, span.t0, 0, h) + at.first * x.step;
  }

  __device__ __forceinline__ void fetch_keys(int64_t k0) const {
    fetch_rows<KC>(base + layout.k, static_cast<const uint16_t*>(p.k.data) + step_row(p.k) + k0,
                   p.k.step, kChunk, at.count, int(p.K - k0));
    if (p.q.data)
      fetch_rows<KC>(base + layout.q, static_cast<const uint16_t*>(p.q.data) + query_row(p.q) + k0,
                     p.q.token, w.rows, queries.rows, int(p.K - k0));
  }
  // A tile of value channels.
  __device__ __forceinline__ void fetch_values(int tile, int64_t k0) const {
    const int to = stage(tile);
    const int v0 = tile * columns, width = int(p.V) - v0;
    const int64_t error_at = (((span.b * p.H + h) * p.T + span.t0) * p.N + at.first) * p.V + v0;
    if (p.q.data)
      fetch_rows(values(to + layout.d_o),
                 static_cast<const uint16_t*>(p.d_o.data) + query_row(p.d_o) + v0, p.d_o.token,
                 w.rows, queries.rows, width);
    fetch_rows(values(to + layout.dv),
               static_cast<const uint16_t*>(p.dv.data) + step_row(p.dv) + v0, p.dv.step, kChunk,
               at.count, width);
    const auto fetch_errors = [&](int place, const uint16_t* from) {
      fetch_rows(values(to + place), from + error_at, p.V, kChunk, at.count, width);
    };
    const auto fetch_state = [&](int place, const uint16_t* from) {
      fetch_rows<KC>(base + to + place, from + (head * p.V + v0) * p.K + k0, p.K, columns, width,
                     int(p.K - k0));
    };
    fetch_errors(layout.e, static_cast<const uint16_t*>(p.error));
    fetch_state(layout.S, static_cast<const uint16_t*>(p.states));
    fetch_state(layout.G, dstates);
    if constexpr (kSplit) {
      fetch_errors(layout.dv + layout.values, w.dv_lo);
      fetch_errors(layout.e + layout.values, w.error_lo);
      fetch_state(layout.S + layout.state, w.states_lo);
      fetch_state(layout.G + layout.state, w.dstates_lo);
    }
  }
};

}  // namespace lrnn::kernels::cuda
