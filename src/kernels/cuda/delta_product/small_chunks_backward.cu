#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/small_chunks.cuh"

// Backward in chunks for small heads: the sweep of chunk_reverse.cu and the sums of
// chunk_gradients.cu, which say what is computed, in one walk from the end.
namespace lrnn::kernels::cuda {
namespace {

using namespace small_chunks;

struct Shared {
  StepRows k[2], q, d_o, e, e_lo, dv, dv_lo;
  StateRows S, S_lo;
  union {
    Square T;
    StepRows out;  // when T is done with
  };
  Vectors vectors;
};
struct GateShared {
  Square decay;
  float slopes[2 * kSteps];
};

using Sums = float[4][4];  // [16 rows, 32 channels]

// acc += A M for rows M of keys or queries.
__device__ __forceinline__ void add_rows(Sums& acc, const Fragment<2>& a, const StepRows& M) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const auto b = matrix(M).b_columns(0, n * 16);
    multiply_small_first(acc[2 * n], a, b.tile(0));
    multiply_small_first(acc[2 * n + 1], a, b.tile(1));
  }
}
// acc = A M over value channels for a state M and its lo; A may have one too.
__device__ __forceinline__ void over_state(Sums& acc, const StepRows& A, const StepRows* A_lo,
                                           const StateRows& M, const StateRows& M_lo) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const auto a = matrix(A).a_rows(0, k * 16);
    Fragment<1> a_lo;
    if (A_lo) a_lo = matrix(*A_lo).a_rows(0, k * 16);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      multiply(acc[2 * n], acc[2 * n + 1], a, matrix(M_lo).b_columns(k * 16, n * 16));
      const auto b = matrix(M).b_columns(k * 16, n * 16);
      if (A_lo) multiply(acc[2 * n], acc[2 * n + 1], a_lo, b);
      multiply(acc[2 * n], acc[2 * n + 1], a, b);
    }
  }
}
// acc += (A + its lo) M over value channels, for the operands of a state M.
__device__ __forceinline__ void over_gradient(Sums& acc, const StepRows& A, const StepRows& A_lo,
                                              const Fragment<2> (&M)[2][2]) {
  using cuda::transposed;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const auto a = matrix(A).a_rows(0, k * 16), a_lo = matrix(A_lo).a_rows(0, k * 16);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const Fragment<2>& m = M[k][n / 2];
      const int u = n % 2 * 2;
      mma(acc[n], a.part[0], transposed(m.part[1][u]), transposed(m.part[1][u + 1]));
      const uint32_t b0 = transposed(m.part[0][u]), b1 = transposed(m.part[0][u + 1]);
      mma(acc[n], a_lo.part[0], b0, b1);
      mma(acc[n], a.part[0], b0, b1);
    }
  }
}
__device__ __forceinline__ float row_dot(const Sums& x, int half, const StepRows& rows) {
  const int i = threadIdx.x / 4 + half * 8, c = threadIdx.x % 4;
  return cuda::row_dot(
      x, half, [&](int t) { return *reinterpret_cast<const uint32_t*>(&rows[i][t * 8 + 2 * c]); });
}
__device__ __forceinline__ void put_sums(const Sums& x, StepRows& to) {
  const int g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 4; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<uint32_t*>(&to[g + half * 8][t * 8 + 2 * c]) =
          pack(x[t][2 * half], x[t][2 * half + 1]);
}

// A chunk in the hands of a warp.
template <bool kGate> struct Backward {
  const DeltaProductBackward& p;
  const SmallKept& kept;
  const Head& at;
  Shared& shared;
  GateShared& gates;
  int64_t chunk;
  const int64_t first = chunk * kSteps;
  const int count = int(min(int64_t(kSteps), at.steps - first));
  const Queries queries{p, first, count};
  const int K = int(p.K), V = int(p.V), g = threadIdx.x / 4, c = threadIdx.x % 4;
  float at_end = 0;  // <G', S_end>, this lane's share

  __device__ __forceinline__ StepRows& keys() const { return shared.k[chunk % 2]; }
  __device__ __forceinline__ float vector(Vector which, int i) const {
    return shared.vectors.of[which][i];
  }
  __device__ __forceinline__ int last(int r) const {  // the last micro-step that query r sees
    return r < queries.rows ? int(queries.at(r)) : -1;
  }

  __device__ __forceinline__ void ask_for_keys(Scalars<kGate>& scalars) const {
    fetch(keys(), at.rows(p.k) + first * p.k.step, p.k.step, count, K);
    scalars.ask(p, at, first);
  }
  __device__ __forceinline__ void ask_for_values() const {
    const int64_t errors = (at.error + first) * V,
                  state = ((at.slot0 + chunk) * p.H + at.h) * K * V;
    if (p.q.data) {
      fetch(shared.q, at.rows(p.q) + queries.token * p.q.token, p.q.token, queries.rows, K);
      fetch(shared.d_o, at.rows(p.d_o) + queries.token * p.d_o.token, p.d_o.token, queries.rows, V);
    }
    fetch(shared.e, kept.error + errors, V, count, V);
    fetch(shared.e_lo, kept.error_lo + errors, V, count, V);
    const int kept_rows = chunk > 0 || p.state ? V : 0;  // a state of zero was not kept
    fetch(shared.S, kept.states + state, K, kept_rows, K);
    fetch(shared.S_lo, kept.states_lo + state, K, kept_rows, K);
    copy_commit();
  }

  // <G', S>, then G' and what it gives dD decay to the chunk's beginning and end.
  __device__ __forceinline__ void decay(State& G, Tile (&dD)[2]) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      scale_columns(dD[m], shared.vectors, kAfter);
#pragma unroll
      for (int t = 0; t < 4; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int v = m * 16 + half * 8 + g, k = t * 8 + 2 * c;
          const uint32_t x = *reinterpret_cast<const uint32_t*>(&shared.S[v][k]),
                         y = *reinterpret_cast<const uint32_t*>(&shared.S_lo[v][k]);
          at_end += G[m][t][2 * half] * (low_of(x) + low_of(y)) +
                    G[m][t][2 * half + 1] * (high_of(x) + high_of(y));
        }
    }
    const float all = vector(kBefore, kSteps - 1);
    at_end *= all;
    scale(G, all);
  }
  // dD += P^T dO and G += (scale diag(a) Q)^T dO.
  __device__ __forceinline__ void read(State& G, Tile (&dD)[2]) const {
    Tile P = {};  // transposed: [micro-steps, queries]
    rows_by_rows(P, keys(), shared.q);
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        const int until = last(t * 8 + 2 * c + u);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int j = g + half * 8;
          float& x = P[t][2 * half + u];
          x = j <= until ? float(p.scale) * x : 0.f;
          if (kGate && j <= until) x *= gates.decay[until][j];
        }
      }
    Fragment<2> read[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const auto a = matrix(shared.d_o).a_columns(m * 16, 0);
#pragma unroll
      for (int t = 0; t < 2; ++t) multiply_small_first(dD[m][t], a, right_of(P, t));
      read[m] = times_columns<2>(a, shared.vectors.pair(kRead, 0), shared.vectors.pair(kRead, 1));
    }
    small_chunks::add_rows(G, read, shared.q);
  }
  // Y = T^T dD, dV = diag(beta) Y, and G loses what is erased, (diag(beta a) K)^T Y.
  __device__ __forceinline__ void solve(State& G, const Tile (&dD)[2]) const {
    Tile Y[2] = {};
    Fragment<2> d[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) d[m] = as_fragment<2>(dD[m][0], dD[m][1]);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const int j = t * 8 + g;
      const Square& T = shared.T;
      const auto b = right_of(make_float2(T[2 * c][j], T[2 * c + 1][j]),
                              make_float2(T[8 + 2 * c][j], T[9 + 2 * c][j]));
#pragma unroll
      for (int m = 0; m < 2; ++m) multiply_small_first(Y[m][t], d[m], b);
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      scale_columns(Y[m], shared.vectors, kBeta);
      d[m] = as_fragment<2>(Y[m][0], Y[m][1]);
      put_across(d[m].part[0], shared.dv, m * 16);
      put_across(d[m].part[1], shared.dv_lo, m * 16);
      if constexpr (kGate) scale_columns(Y[m], shared.vectors, kBefore);
      each([&](int t, int u, int, int) { Y[m][t][u] = -Y[m][t][u]; });
      d[m] = as_fragment<2>(Y[m][0], Y[m][1]);
    }
    small_chunks::add_rows(G, d, keys());
    __syncwarp();
    store(shared.dv, at.rows(p.dv) + first * p.dv.step, p.dv.step, count, V);
  }
  // X = dO e^T and dQ = X K + dO S^T.
  __device__ __forceinline__ Fragment<2> make_dq() const {
    Tile x = {};
    rows_by_rows(x, shared.d_o, shared.e_lo);
    rows_by_rows(x, shared.d_o, shared.e);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int until = last(g + half * 8);
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int j = t * 8 + 2 * c + u;
          float& y = x[t][2 * half + u];
          y = j <= until ? float(p.scale) * vector(kBeta, j) * y : 0.f;
          if (kGate && j <= until) y *= gates.decay[until][j];
        }
    }
    const auto X = as_fragment<2>(x[0], x[1]);
    Sums dq = {};
    over_state(dq, shared.d_o, nullptr, shared.S, shared.S_lo);
    scale_rows(dq, vector(kRead, g), vector(kRead, g + 8));
    add_rows(dq, X, keys());
    if constexpr (kGate)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float slope = row_dot(dq, half, shared.q);
        if (c == 0) gates.slopes[kSteps + g + half * 8] = slope;
      }
    put_sums(dq, shared.out);
    __syncwarp();
    store(shared.out, at.rows(p.dq) + queries.token * p.dq.token, p.dq.token, queries.rows, K);
    __syncwarp();
    return X;
  }
  // E = dV e^T, and dbeta, its diagonal.
  __device__ __forceinline__ Fragment<2> make_E() const {
    Tile x = {};
    rows_by_rows(x, shared.dv, shared.e_lo);
    rows_by_rows(x, shared.dv_lo, shared.e);
    rows_by_rows(x, shared.dv, shared.e);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = g + half * 8;
      if ((g & ~1) == 2 * c && i < count)
        static_cast<float*>(
            p.dbeta)[((at.span.b * p.T + at.span.t0) * p.N + first + i) * p.H + at.h] =
            (g & 1 ? x[half][2 * half + 1] : x[half][2 * half]) / vector(kBeta, i);
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int j = t * 8 + 2 * c + u;
          float& y = x[t][2 * half + u];
          y = j < i ? -vector(kBeta, j) * y : 0.f;
          if (kGate && j < i) y *= gates.decay[i][j];
        }
    }
    return as_fragment<2>(x[0], x[1]);
  }
  // dK = er + src, and the gate's gradient from both.
  __device__ __forceinline__ void make_dk(Sums& src, const Fragment<2>& X) {
    const auto E = make_E();
    Sums er = {};
    over_state(er, shared.dv, &shared.dv_lo, shared.S, shared.S_lo);
    scale_rows(er, -vector(kBefore, g), -vector(kBefore, g + 8));
    add_rows(er, E, keys());
    scale_rows(src, vector(kAfter, g) * vector(kBeta, g),
               vector(kAfter, g + 8) * vector(kBeta, g + 8));
    if constexpr (kGate) {
      const float sum = row_dot(src, 0, keys()) + row_dot(src, 1, keys());
      if (c == 0) at_end += sum;
    }
    if (p.q.data) add_rows(src, transposed(X), shared.q);
    add_rows(src, transposed(E), keys());
    if constexpr (kGate) sum_gates(er, src);
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) er[t][u] += src[t][u];
    put_sums(er, shared.out);
    __syncwarp();
    store(shared.out, at.rows(p.dk) + first * p.dk.step, p.dk.step, count, K);
    __syncwarp();
  }
  __device__ __forceinline__ void sum_gates(const Sums& er, const Sums& src) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float slope = row_dot(er, half, keys()) - row_dot(src, half, keys());
      if (c == 0) gates.slopes[g + half * 8] = slope;
    }
    at_end = sum_lanes<32>(at_end);
    __syncwarp();
    sum_up_gates(p, at.span, Slot{at.s, first, count}, at.h, at_end, [&](int i) {
      const int r = queries.row(i);
      return gates.slopes[i] + (r >= 0 ? gates.slopes[kSteps + r] : 0.f);
    });
  }
};

// dD = diag(r) K G' + P^T dO,  Y = T^T dD,  dV = diag(beta) Y,
// G = a_C G' + (scale diag(a) Q)^T dO - (diag(beta a) K)^T Y,
// dQ = X K + scale diag(a) dO S^T,  dK = E K - diag(a) dV S^T + diag(r beta) e G'^T + X^T Q + E^T K
template <bool kGate>
__global__ void __launch_bounds__(32, 12)
    small_chunk_backward(DeltaProductBackward p, SmallKept kept) {
  __shared__ __align__(16) Shared shared;
  __shared__ __align__(16) GateShared gates;
  const Head at{p};
  const int K = int(p.K), V = int(p.V);
  State G;
  read_state(
      G, p.d_final_state ? static_cast<const float*>(p.d_final_state) + at.head * K * V : nullptr,
      K, V);
  // Keys come a chunk ahead, so that T is made while all else is on its way.
  Scalars<kGate> scalars;
  const auto ask_for_keys = [&](int64_t chunk) {
    if (chunk >= 0) Backward<kGate>{p, kept, at, shared, gates, chunk}.ask_for_keys(scalars);
    copy_commit();
  };
  const int64_t chunks = (at.steps + kSteps - 1) / kSteps;
  ask_for_keys(chunks - 1);
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    Backward<kGate> z{p, kept, at, shared, gates, chunk};
    z.ask_for_values();
    fill_vectors(shared.vectors, gates.decay, p, scalars, z.queries);
    ask_for_keys(chunk - 1);
    copy_wait<2>();
    __syncwarp();
    invert<kGate>(shared.T, z.keys(), shared.vectors, gates.decay);

    // dD = diag(r) K G' + P^T dO, and src = e G'^T while that G is here.
    Tile dD[2] = {};
    Sums src = {};
    {
      Fragment<2> a[2][2];
      operands(a, G);
      times_keys(dD, a, z.keys());
      copy_wait<1>();
      __syncwarp();
      over_gradient(src, shared.e, shared.e_lo, a);
    }
    if constexpr (kGate) z.decay(G, dD);
    if (p.q.data) z.read(G, dD);
    z.solve(G, dD);
    Fragment<2> X;
    if (p.q.data) X = z.make_dq();
    z.make_dk(src, X);
  }
  if (p.dstate) write_state(G, static_cast<float*>(p.dstate) + at.head * K * V, K, V);
}

}  // namespace

void small_chunks_backward(const DeltaProductBackward& p, const SmallKept& kept, void* stream) {
  launch_small_chunks(p.log_gate ? small_chunk_backward<true> : small_chunk_backward<false>, p,
                      kept, stream);
}

}  // namespace lrnn::kernels::cuda
