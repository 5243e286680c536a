#pragma once
#include "kernels/cuda/delta_product/chunk_channels.cuh"

// What chunk_channels_gradients.cu needs of a chunk: where it lies in shared memory, and how it
// gets there. First tiles of values and states, then, in their place, products of pairs and decayed
// keys, then, in the place of those, what is left to be added up channel by channel.
namespace lrnn::kernels::cuda::channels {

template <int KT, bool kSplit> struct Gradients {
  static constexpr int kParts = kSplit ? 2 : 1, kThreads = 512, kGroups = 4;
  static constexpr int kColumns = kSplit ? 32 : 64;                  // value channels in a tile
  static constexpr int kOwn = KT / kGroups, kTiles = kOwn / 8;       // key channels of a warp
  static constexpr int kAcross = kChunk / 2, kXTiles = kAcross / 8;  // of X or E
  using Values = Operand<kChunk, kColumns, kParts>;
  using Read = Operand<kChunk, kColumns, 1>;
  using State = Operand<kColumns, KT, kParts>;
  using Keys = Operand<kChunk, KT, 1>;
  using Pairs = Operand<kChunk, kChunk, kParts>;
  using Decayed = Operand<kChunk, KT, kParts>;
  using HalfDecayed = Operand<kChunk / 2, KT, kParts>;
  using Near = float[4][16][20];  // pairs within 16 micro-steps
  using Result = float[kChunk][KT + 8];
  enum Kind { kDq, kDk, kIn, kOut, kResults };

  struct Stage {
    static constexpr int d_o = 0, dv = d_o + Read::kBytes, e = dv + Values::kBytes,
                         S = e + Values::kBytes, G = S + State::kBytes, bytes = G + State::kBytes;
  };
  // Sums over the 16 rows of a block: of what its reads had from S, of what its writes left in G,
  // and of what the first block wrote and the last one read across the middle.
  struct Totals {
    float in[4][KT], out[4][KT], across[2][KT];
    float ends[kThreads / KT][KT];  // the rows of S G, summed
  };
  static constexpr int beta = 0, totals = beta + 4 * kChunk, near_X = totals + int(sizeof(Totals)),
                       near_E = near_X + int(sizeof(Near)), k = near_E + int(sizeof(Near)),
                       q = k + Keys::kBytes, sum = q + Keys::kBytes,
                       stages = sum + int(sizeof(Sums<KT>)), X = stages, E = X + Pairs::kBytes,
                       k32 = E + Pairs::kBytes, k16 = k32 + Decayed::kBytes,
                       q32 = k16 + Decayed::kBytes, q16 = q32 + HalfDecayed::kBytes,
                       pairs_end = q16 + HalfDecayed::kBytes,
                       results_end = stages + kResults * int(sizeof(Result));
  static constexpr int most(int a, int b) { return a > b ? a : b; }
  static constexpr int bytes = most(most(pairs_end, results_end), stages + 2 * Stage::bytes);
  static_assert(bytes <= kMostShared && stages % 16 == 0 && sum % 16 == 0);

  const DeltaProductBackward& p;
  const ChannelChunks& w;
  unsigned char* memory;
  Slot at;
  const int64_t h = blockIdx.x % unsigned(p.H), head = blockIdx.x;
  const Span span = span_of(p, at.s);
  const Queries queries{p, at.first, at.count};
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, row0 = threadIdx.x / 32 % 4 * 16;
  const int group = threadIdx.x / 128, own = group * kOwn;
  const bool is_E = group >= 2;
  const int across = group % 2 * kAcross;

  template <class T> __device__ __forceinline__ T& in(int place) const {
    return *reinterpret_cast<T*>(memory + place);
  }
  __device__ __forceinline__ const float* betas() const { return &in<float>(beta); }
  __device__ __forceinline__ const Sums<KT>& sums() const { return in<Sums<KT>>(sum); }

  template <class R> __device__ __forceinline__ int64_t query_row(const R& x) const {
    return row_at(x, span.b, span.t0 + queries.token, 0, h);
  }
  template <class R> __device__ __forceinline__ int64_t step_row(const R& x) const {
    return row_at(x, span.b, span.t0, 0, h) + at.first * x.step;
  }

  __device__ __forceinline__ void fetch_keys(const unsigned char* record) const {
    fetch_floats(&in<float>(beta), record + Record<KT, kSplit>::kBeta, kChunk);
    fetch_rows<KT>(shared_address(memory + k),
                   static_cast<const uint16_t*>(p.k.data) + step_row(p.k), p.k.step, kChunk,
                   at.count, int(p.K));
    const auto* const keys = static_cast<const uint16_t*>(p.k.data);
    fetch_queries({shared_address(memory + q), Keys::kStride},
                  p.q.data ? static_cast<const uint16_t*>(p.q.data) + query_row(p.q) : keys,
                  p.q.token, queries, int(p.K));
  }
  __device__ __forceinline__ unsigned char* stage(int tile) const {
    return memory + stages + (tile & 1) * Stage::bytes;
  }
  // A tile of value channels.
  __device__ __forceinline__ void fetch_values(int tile) const {
    const int v0 = tile * kColumns, width = int(p.V) - v0;
    const uint32_t to = shared_address(stage(tile));
    if (p.q.data)
      fetch_queries({to + Stage::d_o, Read::kStride},
                    static_cast<const uint16_t*>(p.d_o.data) + query_row(p.d_o) + v0, p.d_o.token,
                    queries, width);
    const int64_t error_at = (((span.b * p.H + h) * p.T + span.t0) * p.N + at.first) * p.V + v0;
    const auto values = [&](int place, const uint16_t* from, int64_t step) {
      fetch_rows<kColumns>(to + place, from, step, kChunk, at.count, width);
    };
    const auto state = [&](int place, const uint16_t* from) {
      fetch_rows<KT>(to + place, from + (head * p.V + v0) * p.K, p.K, kColumns, width, int(p.K));
    };
    values(Stage::dv, static_cast<const uint16_t*>(p.dv.data) + step_row(p.dv) + v0, p.dv.step);
    values(Stage::e, static_cast<const uint16_t*>(p.error) + error_at, p.V);
    state(Stage::S, w.states);
    state(Stage::G, w.dstates);
    if constexpr (kSplit) {
      values(Stage::dv + Values::kPlane, w.dv_lo + error_at, p.V);
      values(Stage::e + Values::kPlane, w.error_lo + error_at, p.V);
      state(Stage::S + State::kPlane, w.states_lo);
      state(Stage::G + State::kPlane, w.dstates_lo);
    }
  }

  // Keys and queries decayed from the middle of a piece of 64 and of 32 micro-steps on, or up to
  // it.
  __device__ __forceinline__ static int middle(int i, int piece) {
    return i / piece * piece + piece / 2;
  }
  __device__ __forceinline__ float2 from_middle(int i, int piece, int channel) const {
    const float2 m = pair_at(&sums()[middle(i, piece)][channel]),
                 s = pair_at(&sums()[i + 1][channel]);
    return i < middle(i, piece) ? decay(m, s) : decay(s, m);
  }
  __device__ __forceinline__ void decay_keys() const {
    const Keys keys(memory + k), queries_(memory + q);
    const auto pieces = [&](int piece, int k_to, int q_to) {
      const Decayed k_out(memory + k_to);
      const HalfDecayed q_out(memory + q_to);
      for (int item = threadIdx.x; item < kChunk * KT / 8; item += kThreads) {
        const int i = item / (KT / 8), channel = item % (KT / 8) * 8;
        float x[8], y[8];
#pragma unroll
        for (int u = 0; u < 8; u += 2) {
          const float2 f = from_middle(i, piece, channel + u), key = keys.get(i, channel + u),
                       query = queries_.get(i, channel + u);
          x[u] = f.x * key.x, x[u + 1] = f.y * key.y;
          y[u] = f.x * query.x, y[u + 1] = f.y * query.y;
        }
        k_out.put_eight(i, channel, x);
        if (i >= middle(i, piece))
          q_out.put_eight(i / piece * (piece / 2) + i % (piece / 2), channel, y);
      }
    };
    pieces(64, k32, q32), pieces(32, k16, q16);
  }
};

}  // namespace lrnn::kernels::cuda::channels
