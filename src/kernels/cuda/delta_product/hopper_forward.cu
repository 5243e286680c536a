#include "kernels/cuda/delta_product/hopper_sweep.cuh"

// The forward sweep of chunk_forward.cu on Hopper's warp-group products: the same registers, but
// the right operands are read from shared memory by the tensor cores themselves, while the warps
// convert and store. With kMap it only follows the state through a segment, from zero for B and
// from the unit matrix, with no values, for M. The first segment starts from the true state and
// needs no M, the last needs neither. Where that would be more than one turn of the chip,
// hopper_map.cu does it in one.
namespace lrnn::kernels::cuda {
namespace {

// o and the errors are results.
template <int KT, int kRows, bool kSplit>
using Layout = SweepLayout<KT, kRows, kSplit, kChunk, kRows, 2>;

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap> struct Forward {
  using L = Layout<KT, kRows, kSplit>;
  static constexpr int kParts = kSplit ? 2 : 1, kSteps = KT / 16;
  using State = float[KT / 8][4];
  using Square = float[8][4];
  using Reads = float[kRows / 8][4];
  const DeltaProductForward& p;
  const ChunkWork& w;
  const Sweep<L>& at;
  const Pipeline& pipeline;
  bool unit;  // M, not B

  // The fetching group.
  __device__ __forceinline__ void fetch() const {
    const int rank = at.rank();
    const uint16_t* const k_rows = at.rows(p.k);
    const uint16_t* const v_rows = at.rows(p.v) + (unit ? 0 : at.v_tile);
    const uint16_t* const q_rows = at.rows(p.q, p.q.data);
    for (int chunk = at.stretch.begin; chunk < at.stretch.end; ++chunk) {
      const int n = chunk - at.stretch.begin;
      const int64_t first = int64_t(chunk) * kChunk;
      const int count = at.count(first);
      const uint32_t stage = at.stage(n);
      pipeline.wait_free(n);
      if (rank == 0)
        bring_chunk<L, kRows, kSplit>(pipeline.filling(n), stage, L::vectors(at.columns), w,
                                      at.item(chunk), !kMap && p.q.data);
      fetch_tiles<KT, kChunk, kFetchers>(rank, stage + L::k, k_rows + first * p.k.step, p.k.step,
                                         count, int(p.K));
      fetch_columns<kChunk>(at.columns, rank, stage + L::values, v_rows + first * p.v.step,
                            p.v.step, unit ? 0 : count);
      if (!kMap && p.q.data) {
        const Queries queries(p, first, count);
        fetch_tiles<KT, kRows, kFetchers>(rank, stage + L::q, q_rows + queries.token * p.q.token,
                                          p.q.token, queries.rows, int(p.K));
      }
      copy_commit();
      copy_wait<0>();
      wgmma::publish();
      pipeline.filled(n);
    }
  }

  // Starts K S and Q S, each a group of products. Without queries the second multiplies what
  // happens to lie there and nobody looks at O: a branch between the products would make the
  // compiler wait for them.
  __device__ __forceinline__ void start(Square& R, Reads& O, const Fragment<kParts> (&a)[kSteps],
                                        uint32_t stage) const {
    wgmma::fence();
    times_rows<true, kTileBytes>(R, a, stage + L::k);
    wgmma::commit();
    if constexpr (!kMap) times_rows<true, kRows * 128>(O, a, stage + L::q);
    wgmma::commit();
  }
  __device__ __forceinline__ void keep_state(const Fragment<kParts> (&a)[kSteps], int chunk) const {
    if constexpr (kSplit) {
      send_wait<0>();
      meet_group();
    } else {
      send_wait<1>();
      __syncwarp();
    }
    const int64_t to = at.item(chunk) * p.V * KT + at.v0 * 64;
    send_state(a, static_cast<uint16_t*>(p.states) + to, p.V, at.state_scratch());
    if constexpr (kSplit) {
      send_commit();
      send_wait<0>();
      __syncwarp();
      send_state<1>(a, w.states_lo + to, p.V, at.state_scratch());
    }
  }
  // R = diag(beta) (V - diag(a) K S), and starts D = T R.
  __device__ __forceinline__ void solve(Square& D, Square& R, uint32_t stage,
                                        const float* vectors) const {
    subtract_from_values<kGate>(R, vectors, true,
                                stage + L::values + lane_direct(row_bytes(at.columns)) + at.own * 2,
                                row_bytes(at.columns));
    Fragment<kParts> r[4];
    as_fragments(r, R);
    wgmma::fence();
    times_rows<true, kTileBytes>(D, r, stage + L::T);
    if constexpr (kSplit) {
      times_rows<false, kTileBytes>(D, r, stage + L::T_lo);
      times_rows<false, kTileBytes, 1>(D, r, stage + L::T_lo + kTileBytes);
    }
    wgmma::commit();
  }
  // Starts O = scale diag(a) Q S + P D.
  __device__ __forceinline__ void read(Reads& O, const Fragment<kParts> (&d)[4],
                                       uint32_t stage) const {
    if constexpr (!kMap) {
      times_rows<false, kTileBytes>(O, d, stage + L::P);
      if constexpr (kSplit) times_rows<false, kTileBytes, 1>(O, d, stage + L::P_lo);
    }
    wgmma::commit();
  }
  // Starts S = a_C S + (diag(r) K)^T D; S has decayed.
  __device__ __forceinline__ void advance(State& S, const Square& D, const Fragment<kParts> (&d)[4],
                                          uint32_t stage, const float* vectors) const {
    if constexpr (kGate) {  // while O is made
      Square after;
#pragma unroll
      for (int t = 0; t < 8; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) after[t][u] = D[t][u];
      scale_columns(after, vectors + kAfter * kChunk);
      Fragment<kParts> e[4];
      as_fragments(e, after);
      wgmma::fence();
      times_columns<false>(S, e, stage + L::k, kTileBytes);
    } else {
      times_columns<false>(S, d, stage + L::k, kTileBytes);
    }
    wgmma::commit();
  }
  // O and e = D / beta through shared memory to memory.
  __device__ __forceinline__ void send_results(Square& D, Reads& O, int64_t first,
                                               const float* vectors) const {
    const int count = at.count(first), c = threadIdx.x % 4;
    const uint32_t out = at.out();
    if constexpr (kSplit)
      send_wait<0>();
    else
      send_wait<1>();
    meet_group();
    if (p.error) {
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const float2 beta =
            *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + t * 8 + 2 * c);
        const float x = reciprocal(beta.x), y = reciprocal(beta.y);
        D[t][0] *= x, D[t][1] *= y, D[t][2] *= x, D[t][3] *= y;
      }
      put_columns<false>(D, out + L::kResult);
    }
    wgmma::wait<1>();
    wgmma::hold(O);
    if (p.q.data) put_columns<false>(O, out);
    wgmma::publish();
    meet_group();
    if (p.q.data) {
      const Queries queries(p, first, count);
      send_rows(static_cast<uint16_t*>(p.o.data) +
                    row_at(p.o, at.span.b, at.span.t0 + queries.token, 0, at.h) + at.v0 -
                    at.own % 64,
                p.o.token, out, queries.rows);
    }
    if (p.error) {
      const int64_t to = at.error(first);
      send_rows(static_cast<uint16_t*>(p.error) + to, p.V, out + L::kResult, count);
      if constexpr (kSplit) {  // lo follows through the same tile
        send_commit();
        send_wait<0>();
        meet_group();
        put_columns<true>(D, out + L::kResult);
        wgmma::publish();
        meet_group();
        send_rows(w.error_lo + to, p.V, out + L::kResult, count);
      }
    }
    send_commit();
  }

  // A chunk. What is started runs while something else is done.
  __device__ __forceinline__ void walk(State& S, int chunk) const {
    const int turn = chunk - at.stretch.begin;
    pipeline.wait_filled(turn);
    const uint32_t stage = at.stage(turn);
    const float* const vectors = at.vectors(turn);
    Square R, D;
    Reads O;
    Fragment<kParts> a[kSteps], d[4];
    as_fragments(a, S);
    start(R, O, a, stage);
    if (!kMap && p.states) keep_state(a, chunk);
    send_commit();
    wgmma::wait<kSplit ? 0 : 1>();  // the registers of split operands are needed again
    wgmma::hold(R);
    solve(D, R, stage, vectors);
    if constexpr (kGate) scale(S, vectors[kBefore * kChunk + kChunk - 1]);
    wgmma::wait<0>();
    wgmma::hold(D);
    if constexpr (!kMap) wgmma::hold(O);
    as_fragments(d, D);
    if constexpr (!kMap) scale_columns(O, vectors + kRead * kChunk);
    wgmma::fence();
    read(O, d, stage);
    advance(S, D, d, stage, vectors);
    if constexpr (!kMap) send_results(D, O, int64_t(chunk) * kChunk, vectors);
    wgmma::wait<0>();
    wgmma::hold(S);
    pipeline.free(turn);
  }
};

// D = T diag(beta) (V - diag(a) K S),  O = scale diag(a) Q S + P D,  S' = a_C S + (diag(r) K)^T D
template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
__global__ void __launch_bounds__(kMostThreads, 1)
    hopper_sweep(DeltaProductForward p, ChunkWork w, Segments segments, int columns) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using Run = Forward<KT, kRows, kSplit, kGate, kMap>;
  pdl_trigger();
  const Stretch stretch(p, segments);
  const int units = kMap ? KT / columns : 0, tile = int(blockIdx.y) - units;
  const bool unit = tile < 0, last = stretch.segment == segments.count - 1;
  if (kMap && (last || (unit && stretch.segment == 0))) return;
  const Sweep<typename Run::L> at{stretch, p, memory, columns,
                                  int64_t(unit ? blockIdx.y : tile) * columns};
  const Pipeline pipeline(at.pipeline(), at.groups);
  pdl_wait();
  const Run run{p, w, at, pipeline, unit};
  if (at.fetches()) {
    give_registers<kSplit>();
    run.fetch();
    return;
  }
  take_registers<kSplit>();

  typename Run::State S;
  const int64_t matrix = p.K * p.V, segment = stretch.at(p, segments),
                v = at.v0 + threadIdx.x % 32 / 4;
  const float* const initial = static_cast<const float*>(p.state);
  read_state(S,
             stretch.segment > 0 ? (kMap ? nullptr : segments.between + (segment - 1) * matrix)
             : initial           ? initial + at.head * matrix
                                 : nullptr,
             p.K, p.V, v);
  if (kMap && unit) unit_state(S, p.K, v);
  for (int chunk = stretch.begin; chunk < stretch.end; ++chunk) run.walk(S, chunk);
  send_wait<0>();
  if constexpr (kMap) {
    if (unit)
      write_state(S, segments.maps + segment * p.K * KT, p.K, KT, v);
    else
      write_state(S, segments.between + segment * matrix, p.K, p.V, v);
  } else {
    if (last) write_state(S, static_cast<float*>(p.final_state) + at.head * matrix, p.K, p.V, v);
  }
}

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
void launch_sweep(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                  cudaStream_t stream) {
  const int64_t heads = p.S * p.H, walks = heads * segments.count;
  const int64_t used = kMap ? heads * ((segments.count - 1) * p.V + (segments.count - 2) * KT)
                            : walks * p.V;  // columns that somebody walks with
  const int columns = kMap && KT == 64 ? 64 : columns_of(p.V, used / 128);
  if constexpr (kMap && !kSplit)
    if (used / columns > processors() && used / 64 <= kMapBlocks * processors())
      return hopper_map(p, w, segments, stream);
  const int bytes = Layout<KT, kRows, kSplit>::all(columns);
  const auto tiles = unsigned((p.V + (kMap ? KT : 0)) / columns);
  auto* kernel = hopper_sweep<KT, kRows, kSplit, kGate, kMap>;
  allow_shared(kernel, bytes);
  pdl_launch(kernel, dim3(unsigned(walks), tiles), columns * 2 + kFetchers, bytes, stream, p, w,
             segments, columns);
}

template <int KT, int kRows, bool kSplit, bool kGate>
void launch_all(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                cudaStream_t stream) {
  if (segments.count > 1) {
    DeltaProductForward map = p;
    map.q.data = map.error = map.states = nullptr;
    launch_sweep<KT, 64, kSplit, kGate, true>(map, w, segments, stream);
    hopper_join(p, segments, true, stream);
  }
  launch_sweep<KT, kRows, kSplit, kGate, false>(p, w, segments, stream);
}

template <int KT, int kRows>
void launch_hopper(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                   cudaStream_t stream) {
  if (p.log_gate)
    w.split ? launch_all<KT, kRows, true, true>(p, w, segments, stream)
            : launch_all<KT, kRows, false, true>(p, w, segments, stream);
  else
    w.split ? launch_all<KT, kRows, true, false>(p, w, segments, stream)
            : launch_all<KT, kRows, false, false>(p, w, segments, stream);
}

}  // namespace

void hopper_forward(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                    void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return;
  if (p.K <= 64)
    w.rows == 64 ? launch_hopper<64, 64>(p, w, segments, on)
                 : launch_hopper<64, 32>(p, w, segments, on);
  else
    w.rows == 64 ? launch_hopper<128, 64>(p, w, segments, on)
                 : launch_hopper<128, 32>(p, w, segments, on);
}

}  // namespace lrnn::kernels::cuda
