#pragma once
#include "kernels/cuda/delta_product/hopper_sweep.cuh"

// The forward sweep of chunk_forward.cu on Hopper's warp-group products: the same registers, but
// the right operands are read from shared memory by the tensor cores themselves, while the warps
// convert and store. With kMap, for split operands, it only follows the state through a segment:
// from zero for B and from the unit matrix, with no values, for M.
namespace lrnn::kernels::cuda::forward {

// o and the errors are results.
template <int KT, int kRows, bool kSplit, bool kMakeP>
using Layout = SweepLayout<KT, kRows, kSplit, kChunk, kMakeP ? kChunk : kRows, 2>;

// How results leave, without split operands.
struct Leaving {
  Boxes o, e;
  Rows errors;
};

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap> struct Forward {
  static constexpr bool kMakeP = !kMap && makes_P(kSplit);
  using L = Layout<KT, kRows, kSplit, kMakeP>;
  static constexpr int kParts = kSplit ? 2 : 1, kSteps = KT / 16;
  using State = float[KT / 8][4];
  using Square = float[8][4];
  using Reads = float[kRows / 8][4];
  const DeltaProductForward& p;
  const ChunkWork& w;
  const Sweep<L>& at;
  const Pipeline& pipeline;
  const Leaving& boxes;
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
      const Queries queries(p, first, count);
      if (rank == 0)
        bring_chunk<L, kRows, kSplit>(pipeline.filling(n), stage, L::vectors(at.columns), w,
                                      at.item(chunk), !kMap && !kMakeP && p.q.data);
      fetch_tiles<KT, kChunk, kFetchers>(rank, stage + L::k, k_rows + first * p.k.step, p.k.step,
                                         count, int(p.K));
      if (!kMap && p.q.data)
        fetch_tiles<KT, kRows, kFetchers>(rank, stage + L::q, q_rows + queries.token * p.q.token,
                                          p.q.token, queries.rows, int(p.K));
      if constexpr (kMakeP && kGate) fetch_logs(at, n, chunk, w);
      copy_commit();
      fetch_columns<kChunk>(at.columns, rank, stage + L::values, v_rows + first * p.v.step,
                            p.v.step, unit ? 0 : count);
      copy_commit();
      if (kMakeP && p.q.data) {  // while the values come
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
      if constexpr (kMakeP)
        times_columns<false>(O, d, stage + L::P, kTileBytes);
      else
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

  // A chunk's stage, once it is filled.
  struct Filled {
    int turn;
    uint32_t stage;
    const float* vectors;
  };
  __device__ __forceinline__ Filled filled(int chunk) const {
    const int turn = chunk - at.stretch.begin;
    pipeline.wait_filled(turn);
    return {turn, at.stage(turn), at.vectors(turn)};
  }

  // ------------------------------------------------------------------- operands of one part
  // What leaves a chunk later, while the next one's first products run.
  struct Results {
    Fragment<1> o[kRows / 16], e[4];
  };
  __device__ __forceinline__ void send_later(const Results& results, int chunk) const {
    const uint32_t out = at.out();
    send_wait<1>();
    meet_group();
    if (p.q.data) put_tile(results.o, out);
    if (p.error) put_tile(results.e, out + L::kResult);
    wgmma::publish();
    meet_group();
    if (chunk >= at.stretch.begin) {
      const int64_t first = int64_t(chunk) * kChunk, channel = at.v0 - at.own % 64;
      const int count = at.count(first);
      const bool packed = p.cu_seqlens;
      if (p.q.data) {
        const Queries queries(p, first, count);
        send_tile(boxes.o, p.o, p.o.token, out,
                  {at.span.b, at.span.t0 + queries.token, at.h, channel, queries.rows, packed});
      }
      if (p.error)
        send_tile(boxes.e, boxes.errors, p.V, out + L::kResult,
                  {at.span.b, at.span.t0 * p.N + first, at.h, channel, count, packed});
    }
    send_commit();
  }
  // A chunk; `a` is S as an operand.
  __device__ __forceinline__ void walk(State& S, Fragment<1> (&a)[kSteps], Results& results,
                                       int chunk) const {
    const auto [turn, stage, vectors] = filled(chunk);
    Square R, D;
    Reads O;
    start(R, O, a, stage);
    send_later(results, chunk - 1);
    if (p.states) keep_state(a, chunk);
    send_commit();
    wgmma::wait<1>();
    wgmma::hold(R);
    solve(D, R, stage, vectors);
    if constexpr (kGate) scale(S, vectors[kBefore * kChunk + kChunk - 1]);
    wgmma::wait<0>();
    wgmma::hold(D);
    wgmma::hold(O);
    Fragment<1> d[4];
    as_fragments(d, D);
    scale_columns(O, vectors + kRead * kChunk);
    wgmma::hold(O);
    wgmma::fence();
    advance(S, D, d, stage, vectors);
    read(O, d, stage);
    if (p.error) {
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const float2 beta = *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + t * 8 +
                                                             2 * (threadIdx.x % 4));
        const float x = reciprocal(beta.x), y = reciprocal(beta.y);
        D[t][0] *= x, D[t][1] *= y, D[t][2] *= x, D[t][3] *= y;
      }
      as_fragments(results.e, D);
    }
    wgmma::wait<1>();
    wgmma::hold(S);
    as_fragments(a, S);
    wgmma::wait<0>();
    wgmma::hold(O);
    pipeline.free(turn);
    as_fragments(results.o, O);
  }
  __device__ __forceinline__ void walk_all(State& S) const {
    if constexpr (kSplit) {
      for (int chunk = at.stretch.begin; chunk < at.stretch.end; ++chunk) walk(S, chunk);
    } else {
      Results results = {};
      Fragment<1> a[kSteps];
      as_fragments(a, S);
      for (int chunk = at.stretch.begin; chunk < at.stretch.end; ++chunk)
        walk(S, a, results, chunk);
      send_later(results, at.stretch.end - 1);
    }
    send_wait<0>();
  }

  // ----------------------------------------------------------------------------------- split
  // A chunk. What is started runs while something else is done.
  __device__ __forceinline__ void walk(State& S, int chunk) const {
    const auto [turn, stage, vectors] = filled(chunk);
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
__device__ __forceinline__ void sweep(const DeltaProductForward& p, const ChunkWork& w,
                                      const Segments& segments, const Stretch& stretch,
                                      const Columns& of, const Leaving& boxes) {
  using Run = Forward<KT, kRows, kSplit, kGate, kMap>;
  const bool unit = of.unit;
  const Sweep<typename Run::L> at{stretch, p, of.memory, of.count, of.first};
  const Pipeline pipeline(at.pipeline(), at.groups);
  pdl_wait();
  const Run run{p, w, at, pipeline, boxes, unit};
  if (at.fetches()) {
    give_registers<kSplit, Run::kMakeP>();
    run.fetch();
    return;
  }
  take_registers<kSplit, Run::kMakeP>();

  typename Run::State S;
  const int64_t segment = stretch.at(p), matrix = p.K * p.V, v = at.v0 + threadIdx.x % 32 / 4;
  const float* const initial = static_cast<const float*>(p.state);
  const Between<KT, kSplit> between(segments, at);
  if (kMap && unit)
    unit_state(S, p.K, v);
  else if (kMap)
    clear(S);
  else if (stretch.first())
    read_state(S, initial ? initial + at.head * matrix : nullptr, p.K, p.V, v);
  else
    between.read(S, segment - p.H);
  run.walk_all(S);
  if (kMap && unit) {
    if (v < KT) write_state(S, segments.maps + segment * KT * KT, p.K, KT, v);
  } else if (!kMap && stretch.last) {
    write_state(S, static_cast<float*>(p.final_state) + at.head * matrix, p.K, p.V, v);
  } else if (kMap || stretch.first()) {
    between.write(S, segment);
  }
}

}  // namespace lrnn::kernels::cuda::forward
