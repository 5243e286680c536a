#pragma once
#include "kernels/cuda/delta_product/decays.cuh"

// Where the chunk kernels on mma.sync have what in shared memory, and how much of it they take on
// the chip at hand. Two stages let the next chunk (or tile of values) come while one is worked on;
// a chip with less shared memory has narrower blocks, then one stage.
namespace lrnn::kernels::cuda {

// Calls launch.template operator()<KT>() with the keys' channels, padded.
template <class Launch> void with_padded_keys(int64_t K, Launch&& launch) {
  if (K <= 32) return launch.template operator()<32>();
  if (K <= 64) return launch.template operator()<64>();
  if (K <= 128) return launch.template operator()<128>();
  launch.template operator()<256>();
}

// ------------------------------------------------------------------------------- preparation
// T takes the place of the keys when they are done, L that of the queries.
struct PreparePlaces {
  static constexpr int kStride = kChunk + 4, kSquare = kChunk * kStride * int(sizeof(float));
  int q, bytes;
  __host__ __device__ constexpr PreparePlaces(int KT, int rows) : q(), bytes() {
    const int keys = kChunk * row_bytes(KT), queries = rows * row_bytes(KT);
    q = keys > kSquare ? keys : kSquare;
    bytes = q + (queries > kSquare ? queries : kSquare);
  }
};

// ------------------------------------------------------------------------------------ sweeps
constexpr int kMostColumns = 128;  // of the state per block: 16 a warp

// A stage, in bytes. `values`: rows of V forwards, of dO backwards.
struct StageLayout {
  int k = 0, q, values, T, T_lo, P, P_lo, vectors, bytes;
  __host__ __device__ StageLayout(int KT, int rows, int value_rows, int columns, bool split) {
    q = k + kChunk * row_bytes(KT);
    values = q + rows * row_bytes(KT);
    T = values + value_rows * row_bytes(columns);
    T_lo = T + kChunk * row_bytes(kChunk);
    P = T_lo + (split ? lo_parts_of_T(KT) * kChunk * row_bytes(kChunk) : 0);
    P_lo = P + rows * row_bytes(kChunk);
    vectors = P_lo + (split ? rows * row_bytes(kChunk) : 0);
    bytes = vectors + kVectorCount * kChunk * int(sizeof(float));
  }
};

// Value channels of a block, and how many blocks share a head.
struct SweepSize {
  int columns = 0;     // 0: a block does not fit
  int next_stage = 0;  // bytes to the second stage; 0: there is one
  int bytes = 0;
  int64_t tiles = 0;
};
inline SweepSize sweep_size(int KT, int64_t V, int rows, int value_rows, bool split) {
  const int shared = chip().shared;
  for (const int stages : {2, 1}) {
    const int least = stages == 2 ? 64 : 16;
    for (int64_t tiles = (V + kMostColumns - 1) / kMostColumns;; ++tiles) {
      const int columns = int((V + tiles * 16 - 1) / (tiles * 16) * 16);
      const int stage = StageLayout(KT, rows, value_rows, columns, split).bytes;
      if (stages * stage <= shared)
        return {columns, stages == 2 ? stage : 0, stages * stage, tiles};
      if (columns <= least) break;
    }
  }
  return {};
}

// --------------------------------------------------------------------------------- gradients
// In bytes. In split mode the lo half of a matrix follows it.
struct GradientLayout {
  int k = 0, q, X, X_bytes, E, vectors, slopes, decays, stages, d_o = 0, dv, e, S, G, stage;
  int values, state;  // bytes of a tile of values and of a state
  __host__ __device__ GradientLayout(int KC, int rows, int columns, bool gate, bool split) {
    const int parts = split ? 2 : 1;
    q = k + kChunk * row_bytes(KC);
    X = q + rows * row_bytes(KC);
    X_bytes = rows * row_bytes(kChunk);
    E = X + parts * X_bytes;
    vectors = E + parts * kChunk * row_bytes(kChunk);
    slopes = vectors + kVectorCount * kChunk * int(sizeof(float));
    decays = slopes + (gate ? 9 * kChunk * int(sizeof(float)) : 0);
    stages = decays + (gate ? int(sizeof(Decays)) : 0);
    values = kChunk * row_bytes(columns), state = columns * row_bytes(KC);
    dv = d_o + rows * row_bytes(columns);
    e = dv + parts * values;
    S = e + parts * values;
    G = S + parts * state;
    stage = G + parts * state;
  }
};

// Key channels that a block has at a time, and value channels of a tile.
struct GradientSize {
  int keys = 0, columns = 0;  // 0: a block does not fit
  int next_stage = 0;         // bytes to the second stage; 0: there is one
  int bytes = 0;
};
// The same with a gate and without: sums are over tiles, and a gate of 1 gives the bits of none.
inline GradientSize gradient_size(const DeltaProductInputs& p, int rows, bool split) {
  const int shared = chip().shared, most = split ? 32 : 64;
  const int widest = p.K <= 32 ? 32 : p.K <= 64 ? 64 : 128;
  for (const int stages : {2, 1})
    for (int keys = widest; keys >= 64 || keys == widest; keys /= 2)
      for (int columns = int(p.V < most ? p.V : most); columns >= 16; columns = columns / 32 * 16) {
        const int count = p.V > columns ? stages : 1;
        const auto bytes = [&](bool gate) {
          const GradientLayout at(keys, rows, columns, gate, split);
          return at.stages + count * at.stage;
        };
        const GradientLayout at(keys, rows, columns, true, split);
        if (bytes(true) <= shared)
          return {keys, columns, count == 2 ? at.stage : 0, bytes(p.log_gate != nullptr)};
      }
  return {};
}

}  // namespace lrnn::kernels::cuda
