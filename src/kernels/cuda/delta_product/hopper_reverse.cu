#include "kernels/cuda/delta_product/hopper_sweep.cuh"

// The backward sweep of chunk_reverse.cu on Hopper's warp-group products. With kMap it only follows
// the gradient of the state through a segment, from zero at its end; the last segments, whose ends
// are those of the sequences, are walked beside those maps. Where P is not kept, the fetching group
// makes it from the keys and queries that it fetched.
namespace lrnn::kernels::cuda {
namespace {

// dV is the result. P takes a whole tile where it is made here.
template <int KT, int kRows, bool kSplit, bool kMakeP>
using Layout = SweepLayout<KT, kRows, kSplit, kRows, kMakeP ? kChunk : kRows, 1>;

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap> struct Backward {
  static constexpr bool kMakeP = makes_P(kSplit), kLater = !kSplit && !kMap;
  using L = Layout<KT, kRows, kSplit, kMakeP>;
  static constexpr int kParts = kSplit ? 2 : 1, kSteps = KT / 16, kReads = kRows / 16;
  using State = float[KT / 8][4];
  using Square = float[8][4];
  const DeltaProductBackward& p;
  const ChunkWork& w;
  const StateGradients& dstates;
  const Sweep<L>& at;
  const Pipeline& pipeline;
  const Boxes& boxes;  // of dV

  // The fetching group.
  __device__ __forceinline__ void fetch() const {
    const int rank = at.rank();
    const uint16_t* const k_rows = at.rows(p.k);
    const uint16_t* const q_rows = at.rows(p.q, p.q.data);
    const uint16_t* const do_rows =
        static_cast<const uint16_t*>(p.d_o.data) +
        (p.q.data ? row_at(p.d_o, at.span.b, at.span.t0, 0, at.h) + at.v_tile : 0);
    for (int chunk = at.stretch.end - 1; chunk >= at.stretch.begin; --chunk) {
      const int n = at.stretch.end - 1 - chunk;
      const int64_t first = int64_t(chunk) * kChunk;
      const int count = at.count(first);
      const uint32_t stage = at.stage(n);
      const Queries queries(p, first, count);
      // What P is made of comes first, where it is made.
      const auto bring_pieces = [&] {
        if (rank == 0)
          bring_chunk<L, kRows, kSplit>(pipeline.filling(n), stage, L::vectors(at.columns), w,
                                        at.item(chunk), !kMakeP && p.q.data);
      };
      pipeline.wait_free(n);
      if constexpr (!kMakeP) bring_pieces();
      fetch_tiles<KT, kChunk, kFetchers>(rank, stage + L::k, k_rows + first * p.k.step, p.k.step,
                                         count, int(p.K));
      if (p.q.data)
        fetch_tiles<KT, kRows, kFetchers>(rank, stage + L::q, q_rows + queries.token * p.q.token,
                                          p.q.token, queries.rows, int(p.K));
      if constexpr (kMakeP && kGate) fetch_logs(at, n, chunk, w);
      copy_commit();
      if constexpr (kMakeP) bring_pieces();
      if (p.q.data)
        fetch_columns<kRows>(at.columns, rank, stage + L::values,
                             do_rows + queries.token * p.d_o.token, p.d_o.token, queries.rows);
      copy_commit();
      if (kMakeP && p.q.data) {  // while the gradient of o comes
        copy_wait<1>();
        wgmma::publish();
        make_P<KT, kRows, kGate>(stage + L::P, stage + L::k, stage + L::q, queries, float(p.scale),
                                 at.logs(n));
      }
      copy_wait<0>();
      wgmma::publish();
      pipeline.filled(n);
    }
  }

  // dO^T, and the same times scale diag(a).
  __device__ __forceinline__ void load_reads(Fragment<1> (&o)[kReads],
                                             Fragment<kParts> (&read)[kReads], uint32_t stage,
                                             const float* vectors) const {
    const Matrix d_o{stage + L::values, row_bytes(at.columns)};
#pragma unroll
    for (int k = 0; k < kReads; ++k) {
      o[k] = d_o.a_columns(at.own, k * 16);
      const float* const by = vectors + kRead * kChunk + k * 16 + 2 * (threadIdx.x % 4);
      read[k] = times_columns<kParts>(o[k], *reinterpret_cast<const float2*>(by),
                                      *reinterpret_cast<const float2*>(by + 8));
    }
  }
  // G' to memory.
  __device__ __forceinline__ void send_gradients(const Fragment<kParts> (&a)[kSteps],
                                                 int chunk) const {
    if constexpr (kMap) return;
    const uint32_t scratch = at.state_scratch();
    if constexpr (kSplit) {
      const int64_t to = at.item(chunk) * p.V * KT + at.v0 * 64;
      send_wait<0>();
      meet_group();
      send_state(a, dstates.chunks + to, p.V, scratch);
      send_commit();
      send_wait<0>();
      __syncwarp();
      send_state<1>(a, w.dstates_lo + to, p.V, scratch);
    } else {
      send_wait<1>();
      __syncwarp();
      put_state(a, scratch);
      const int64_t first = int64_t(chunk) * kChunk;
      const GradientRows<KT> rows(p, dstates,
                                  {at.span, first, at.count(first), at.h, at.item(chunk), at.head});
      const int lane = threadIdx.x % 32;
      if (lane < 16) {
        constexpr int kEach = 16 * 64 / KT;  // rows with 64 keys
        const int row = lane / kEach * int(p.V * 64 / KT) + int(at.v0) * 64 / KT + lane % kEach;
        send(rows.at(row), scratch + lane * KT * 2, KT * 2);
      }
    }
    send_commit();
  }
  // dD = diag(r) K G' + P^T dO, while G' goes to memory, and starts G += (scale diag(a) Q)^T dO.
  __device__ __forceinline__ void read(Square& dD, State& G,
                                       [[maybe_unused]] const Fragment<1> (&dv)[4], int chunk,
                                       uint32_t stage, const float* vectors) const {
    Fragment<kParts> a[kSteps], read[kReads];
    Fragment<1> o[kReads];
    as_fragments(a, G);
    load_reads(o, read, stage, vectors);
    if constexpr (kGate) scale(G, vectors[kBefore * kChunk + kChunk - 1]);
    // The second sum of dD follows the first in the same registers. Split operands need theirs back
    // before, and a gate scales the first alone.
    constexpr bool kPause = kSplit || kGate;
    wgmma::fence();
    times_rows<true, kTileBytes>(dD, a, stage + L::k);
    if constexpr (kPause) {
      wgmma::commit();
      if constexpr (kLater) send_later(dv, chunk + 1);
      send_gradients(a, chunk);
      wgmma::wait<0>();
      wgmma::hold(dD);
      if constexpr (kGate) scale_columns(dD, vectors + kAfter * kChunk);
      wgmma::fence();
    }
    if constexpr (kMakeP)
      times_rows<false, kTileBytes>(dD, o, stage + L::P);
    else
      times_columns<false>(dD, o, stage + L::P, kTileBytes);
    if constexpr (kSplit) times_columns<false>(dD, o, stage + L::P_lo, kTileBytes);
    wgmma::commit();
    times_columns<false>(G, read, stage + L::q, kRows * 128);
    wgmma::commit();
    if constexpr (!kPause && kLater) send_later(dv, chunk + 1);
    if constexpr (!kPause) send_gradients(a, chunk);
    wgmma::wait<1>();
    wgmma::hold(dD);
  }
  // Y = T^T dD.
  __device__ __forceinline__ void solve(Square& Y, const Square& dD, uint32_t stage) const {
    Fragment<kParts> d[4];
    as_fragments(d, dD);
    wgmma::fence();
    times_columns<true>(Y, d, stage + L::T, kTileBytes);
    if constexpr (kSplit) {
      times_columns<false>(Y, d, stage + L::T_lo, kTileBytes);
      times_columns<false, 1>(Y, d, stage + L::T_lo + kTileBytes, kTileBytes);
    }
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(Y);
  }
  // Starts G -= (diag(beta a) K)^T Y; Y has beta.
  __device__ __forceinline__ void advance(State& G, const Square& Y, uint32_t stage,
                                          const float* vectors) const {
    Square erased;
#pragma unroll
    for (int t = 0; t < 8; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) erased[t][u] = -Y[t][u];
    if constexpr (kGate) scale_columns(erased, vectors + kBefore * kChunk);
    Fragment<kParts> d[4];
    as_fragments(d, erased);
    wgmma::fence();
    times_columns<false>(G, d, stage + L::k, kTileBytes);
    wgmma::commit();
  }
  // dV = diag(beta) Y through shared memory to memory, split.
  __device__ __forceinline__ void send_results(const Square& Y, int64_t first) const {
    const int count = at.count(first);
    const uint32_t out = at.out();
    send_wait<0>();
    meet_group();
    put_columns<false>(Y, out);
    put_columns<true>(Y, out + L::kResult);
    wgmma::publish();
    meet_group();
    send_rows(static_cast<uint16_t*>(p.dv.data) + row_at(p.dv, at.span.b, at.span.t0, 0, at.h) +
                  first * p.dv.step + at.v0 - at.own % 64,
              p.dv.step, out, count);
    send_rows(w.dv_lo + at.error(first), p.V, out + L::kResult, count);
    send_commit();
  }
  // The same of one part, while the next chunk's first products run.
  using Results = Fragment<1>[4];
  __device__ __forceinline__ void send_later(const Results& dv, int chunk) const {
    send_wait<1>();
    meet_group();
    put_tile(dv, at.out());
    wgmma::publish();
    meet_group();
    if (chunk < at.stretch.end) {
      const int64_t first = int64_t(chunk) * kChunk;
      send_tile(boxes, p.dv, p.dv.step, at.out(),
                {at.span.b, at.span.t0 * p.N + first, at.h, at.v0 - at.own % 64, at.count(first),
                 p.cu_seqlens != nullptr});
    }
    send_commit();
  }

  // A chunk. What is started runs while something else is done.
  __device__ __forceinline__ void walk(State& G, [[maybe_unused]] Results& dv, int chunk) const {
    const int turn = at.stretch.end - 1 - chunk;
    pipeline.wait_filled(turn);
    const uint32_t stage = at.stage(turn);
    const float* const vectors = at.vectors(turn);
    Square dD, Y;
    read(dD, G, dv, chunk, stage, vectors);
    solve(Y, dD, stage);
    wgmma::hold(G);
    scale_columns(Y, vectors + kBeta * kChunk);
    advance(G, Y, stage, vectors);
    if constexpr (kSplit && !kMap) send_results(Y, int64_t(chunk) * kChunk);
    if constexpr (kLater) as_fragments(dv, Y);
    wgmma::wait<0>();
    wgmma::hold(G);
    pipeline.free(turn);
  }
  __device__ __forceinline__ void walk_all(State& G) const {
    Results dv = {};
    for (int chunk = at.stretch.end - 1; chunk >= at.stretch.begin; --chunk) walk(G, dv, chunk);
    if constexpr (kLater) send_later(dv, at.stretch.begin);
    send_wait<0>();
  }
};

// What all blocks of the reverse sweep are given.
struct Given {
  const DeltaProductBackward& p;
  const ChunkWork& w;
  const Segments& segments;
  const StateGradients& dstates;
  const Boxes& boxes;
};

// dD = diag(r) K G' + P^T dO,  Y = T^T dD,  dV = diag(beta) Y,
// G = a_C G' + (scale diag(a) Q)^T dO - (diag(beta a) K)^T Y
template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
__device__ __forceinline__ void sweep_back(const Given& given, const Stretch& stretch,
                                           const Columns& of) {
  using Run = Backward<KT, kRows, kSplit, kGate, kMap>;
  const auto& [p, w, segments, dstates, boxes] = given;
  const Sweep<typename Run::L> at{stretch, p, of.memory, of.count, of.first};
  if (!p.q.data) {  // no outputs: their gradient is zero, and so are the products with it
    for (int i = threadIdx.x; i < 2 * at.stage_bytes / 4; i += blockDim.x)
      reinterpret_cast<uint32_t*>(of.memory)[i] = 0;
    wgmma::publish();
  }
  const Pipeline pipeline(at.pipeline(), at.groups);
  pdl_wait();
  const Run run{p, w, dstates, at, pipeline, boxes};
  if (at.fetches()) {
    give_registers<kSplit, Run::kMakeP>();
    run.fetch();
    return;
  }
  take_registers<kSplit, Run::kMakeP>();

  typename Run::State G;
  const int64_t segment = stretch.at(p), matrix = p.K * p.V, v = at.v0 + threadIdx.x % 32 / 4;
  const float* const final = static_cast<const float*>(p.d_final_state);
  const Between<KT, kSplit> between(segments, at);
  if (kMap)
    clear(G);
  else if (stretch.last)
    read_state(G, final ? final + at.head * matrix : nullptr, p.K, p.V, v);
  else
    between.read(G, segment + p.H);
  run.walk_all(G);
  if (!kMap && stretch.first()) {
    if (p.dstate) write_state(G, static_cast<float*>(p.dstate) + at.head * matrix, p.K, p.V, v);
  } else if (kMap || stretch.last) {
    between.write(G, segment);
  }
}

// kEnd: the last segments, which end with the sequences, and the maps of those between them and the
// first. Else all other segments; all where there is but one.
template <int KT, int kRows, bool kSplit, bool kGate, bool kEnd>
__global__ void __launch_bounds__(kMostThreads, 1)
    hopper_back(DeltaProductBackward p, ChunkWork w, Segments segments, StateGradients dstates,
                int columns, const __grid_constant__ Boxes boxes) {
  extern __shared__ __align__(1024) unsigned char memory[];
  pdl_trigger();
  if constexpr (!kEnd) {
    const bool cut = segments.chunks > 0;
    const unsigned ended = cut && !p.cu_seqlens ? unsigned(p.S * p.H) : 0;
    const Stretch stretch(p, segments, blockIdx.x + ended, true);
    // Even if no block walks, this ends after what was before it.
    if (cut && (stretch.last || stretch.empty())) return pdl_wait();
    return sweep_back<KT, kRows, kSplit, kGate, false>(
        {p, w, segments, dstates, boxes}, stretch,
        {int64_t(blockIdx.y) * columns, columns, memory});
  }
  const Stretch stretch(p, segments, blockIdx.x, true);
  const Columns of{int64_t(blockIdx.y) * columns, columns, memory};
  const Given given{p, w, segments, dstates, boxes};
  if (stretch.empty() || (stretch.first() && !stretch.last)) return;
  if (stretch.last)
    sweep_back<KT, kRows, kSplit, kGate, false>(given, stretch, of);
  else
    sweep_back<KT, kRows, kSplit, kGate, true>(given, stretch, of);
}

template <int KT, int kRows, bool kSplit, bool kGate>
void launch_all(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                const StateGradients& dstates, cudaStream_t stream) {
  const bool cut = segments.chunks > 0;
  const int64_t walks =
      !cut ? p.S * p.H : (segment_slots(p, segments) - (p.cu_seqlens ? 0 : p.S)) * p.H;
  const int columns = columns_of(p.V, walks * p.V / 128);
  const int bytes = Layout<KT, kRows, kSplit, makes_P(kSplit)>::all(columns);
  const Boxes boxes = kSplit ? Boxes() : boxes_of(p, p.dv, p.V, false);
  const dim3 blocks(unsigned(walks), unsigned(p.V / columns));
  const int threads = columns * 2 + kFetchers;
  auto *begin = hopper_back<KT, kRows, kSplit, kGate, true>,
       *rest = hopper_back<KT, kRows, kSplit, kGate, false>;
  allow_shared(begin, bytes), allow_shared(rest, bytes);
  auto* first = cut ? begin : rest;
  first<<<blocks, threads, bytes, stream>>>(p, w, segments, dstates, columns, boxes);
  check_launch("delta_product");
  if (!cut) return;
  hopper_join(p, segments, false, kSplit, stream);
  pdl_launch(rest, blocks, threads, bytes, stream, p, w, segments, dstates, columns, boxes);
}

template <int KT, int kRows>
void launch_hopper(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                   const StateGradients& dstates, cudaStream_t stream) {
  if (p.log_gate)
    w.split ? launch_all<KT, kRows, true, true>(p, w, segments, dstates, stream)
            : launch_all<KT, kRows, false, true>(p, w, segments, dstates, stream);
  else
    w.split ? launch_all<KT, kRows, true, false>(p, w, segments, dstates, stream)
            : launch_all<KT, kRows, false, false>(p, w, segments, dstates, stream);
}

}  // namespace

void hopper_reverse(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                    const StateGradients& dstates, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return;
  if (p.K <= 64)
    w.rows == 64 ? launch_hopper<64, 64>(p, w, segments, dstates, on)
                 : launch_hopper<64, 32>(p, w, segments, dstates, on);
  else
    w.rows == 64 ? launch_hopper<128, 64>(p, w, segments, dstates, on)
                 : launch_hopper<128, 32>(p, w, segments, dstates, on);
}

}  // namespace lrnn::kernels::cuda
