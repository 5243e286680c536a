#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/small_chunks.cuh"

// Forward in chunks for small heads, as in chunk.h, but T and P are made here, by the warp that
// needs them.
namespace lrnn::kernels::cuda {
namespace {

using namespace small_chunks;

struct Shared {
  struct Stage {
    StepRows k, q, v;
  } stage[2];
  StepRows out;
  StateRows state;
  Square T, decay;
  Vectors vectors;
};

// A chunk in the hands of a warp. The rows of its head are found once, not once a chunk.
struct HeadRows {
  const uint16_t *k, *v, *q;
  uint16_t* o;
};
template <bool kGate> struct Forward {
  const DeltaProductForward& p;
  const SmallKept& kept;
  const Head& at;
  const HeadRows& rows;
  Shared& shared;
  int64_t first;
  const int count = int(min(int64_t(kSteps), at.steps - first));
  const Queries queries{p, first, count};
  Shared::Stage& in = shared.stage[first / kSteps % 2];
  const int K = int(p.K), V = int(p.V), g = threadIdx.x / 4, c = threadIdx.x % 4;

  __device__ __forceinline__ void ask(Scalars<kGate>& scalars) const {
    fetch(in.k, rows.k + first * p.k.step, p.k.step, count, K);
    fetch(in.v, rows.v + first * p.v.step, p.v.step, count, V);
    if (p.q.data) fetch(in.q, rows.q + queries.token * p.q.token, p.q.token, queries.rows, K);
    scalars.ask(p, at, first);
  }
  // The state before the chunk; backward knows a state of zero.
  __device__ __forceinline__ void keep_state(const Fragment<2> (&s)[2][2]) const {
    if (!kept.states || (first == 0 && !p.state)) return;
    const int64_t to = ((at.slot0 + first / kSteps) * p.H + at.h) * K * V;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int n = 0; n < 2; ++n) put(s[m][n].part[part], &shared.state[m * 16], n * 16);
      __syncwarp();
      store(shared.state, (part ? kept.states_lo : kept.states) + to, K, V, K);
      __syncwarp();
    }
  }
  // R = diag(beta) (V - diag(a) K S), then D = T R.
  __device__ __forceinline__ void solve(Tile (&D)[2], const Fragment<2> (&s)[2][2]) const {
    Tile R[2] = {};
    times_keys(R, s, in.k);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const auto values = matrix(in.v).a_columns(m * 16, 0);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const uint32_t upper = values.part[0][2 * t], lower = values.part[0][2 * t + 1];
        float(&x)[4] = R[m][t];
        const float2 beta = shared.vectors.pair(kBeta, t);
        float2 before = make_float2(1, 1);
        if constexpr (kGate) before = shared.vectors.pair(kBefore, t);
        x[0] = beta.x * (low_of(upper) - before.x * x[0]);
        x[1] = beta.y * (high_of(upper) - before.y * x[1]);
        x[2] = beta.x * (low_of(lower) - before.x * x[2]);
        x[3] = beta.y * (high_of(lower) - before.y * x[3]);
      }
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const auto b = right_of(*reinterpret_cast<const float2*>(&shared.T[t * 8 + g][2 * c]),
                              *reinterpret_cast<const float2*>(&shared.T[t * 8 + g][8 + 2 * c]));
#pragma unroll
      for (int m = 0; m < 2; ++m)
        multiply_small_first(D[m][t], as_fragment<2>(R[m][0], R[m][1]), b);
    }
  }
  // O = scale diag(a) Q S + P D.
  __device__ __forceinline__ void read(const Fragment<2> (&s)[2][2],
                                       const Fragment<2> (&d)[2]) const {
    Tile P = {}, O[2] = {};
    rows_by_rows(P, in.q, in.k);
    const bool all = queries.rows > 8;
    times_keys(O, s, in.q, all);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = g + half * 8, last = r < queries.rows ? int(queries.at(r)) : -1;
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int j = t * 8 + 2 * c + u;
          float& x = P[t][2 * half + u];
          x = j <= last ? float(p.scale) * x : 0.f;
          if (kGate && j <= last) x *= shared.decay[last][j];
        }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      scale_columns(O[m], shared.vectors, kRead);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        if (t == 1 && !all) continue;
        multiply_small_first(O[m][t], d[m], right_of(P, t));
      }
      put_across(as_fragment<1>(O[m][0], O[m][1]).part[0], shared.out, m * 16);
    }
    __syncwarp();
    store(shared.out, rows.o + queries.token * p.o.token, p.o.token, queries.rows, V);
    __syncwarp();
  }
  // S = a_C S + (diag(r) K)^T D.
  __device__ __forceinline__ void advance(State& S, Fragment<2> (&d)[2], const Tile (&D)[2]) const {
    if constexpr (kGate) {
      scale(S, shared.vectors.of[kBefore][kSteps - 1]);
      Tile after[2];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        each([&](int t, int u, int, int) { after[m][t][u] = D[m][t][u]; });
        scale_columns(after[m], shared.vectors, kAfter);
        d[m] = as_fragment<2>(after[m][0], after[m][1]);
      }
    }
    add_rows(S, d, in.k);
  }
  // e = D / beta.
  __device__ __forceinline__ void keep_error(Tile (&D)[2]) const {
    Fragment<2> e[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const float2 beta = shared.vectors.pair(kBeta, t);
        const float x = reciprocal(beta.x), y = reciprocal(beta.y);
        D[m][t][0] *= x, D[m][t][1] *= y, D[m][t][2] *= x, D[m][t][3] *= y;
      }
      e[m] = as_fragment<2>(D[m][0], D[m][1]);
    }
    const int64_t to = (at.error + first) * V;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
#pragma unroll
      for (int m = 0; m < 2; ++m) put_across(e[m].part[part], shared.out, m * 16);
      __syncwarp();
      store(shared.out, (part ? kept.error_lo : kept.error) + to, V, count, V);
      __syncwarp();
    }
  }
};

// D = T diag(beta) (V - diag(a) K S),  O = scale diag(a) Q S + P D,  S' = a_C S + (diag(r) K)^T D
template <bool kGate>
__global__ void __launch_bounds__(32) small_chunk_forward(DeltaProductForward p, SmallKept kept) {
  __shared__ __align__(16) Shared shared;
  const Head at{p};
  const HeadRows rows{at.rows(p.k), at.rows(p.v), at.rows(p.q), at.rows(p.o)};
  const int K = int(p.K), V = int(p.V);
  Scalars<kGate> scalars;
  State S;
  read_state(S, p.state ? static_cast<const float*>(p.state) + at.head * K * V : nullptr, K, V);
  if (at.steps > 0) Forward<kGate>{p, kept, at, rows, shared, 0}.ask(scalars);
  copy_commit();
  for (int64_t first = 0; first < at.steps; first += kSteps) {
    const Forward<kGate> chunk{p, kept, at, rows, shared, first};
    fill_vectors(shared.vectors, shared.decay, p, scalars, chunk.queries);
    if (first + kSteps < at.steps)
      Forward<kGate>{p, kept, at, rows, shared, first + kSteps}.ask(scalars);
    copy_commit();
    Fragment<2> s[2][2], d[2];
    operands(s, S);
    chunk.keep_state(s);
    copy_wait<1>();
    __syncwarp();
    invert<kGate>(shared.T, chunk.in.k, shared.vectors, shared.decay);
    Tile D[2] = {};
    chunk.solve(D, s);
#pragma unroll
    for (int m = 0; m < 2; ++m) d[m] = as_fragment<2>(D[m][0], D[m][1]);
    if (p.q.data) chunk.read(s, d);
    chunk.advance(S, d, D);
    if (kept.error) chunk.keep_error(D);
    __syncwarp();
  }
  write_state(S, static_cast<float*>(p.final_state) + at.head * K * V, K, V);
}

}  // namespace

void small_chunks_forward(const DeltaProductForward& p, const SmallKept& kept, void* stream) {
  launch_small_chunks(p.log_gate ? small_chunk_forward<true> : small_chunk_forward<false>, p, kept,
                      stream);
}

int64_t small_chunks_slots(const DeltaProductInputs& p) { return chunk_slots(p, kSteps); }

}  // namespace lrnn::kernels::cuda
