#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/small_chunks.cuh"

// Backward in chunks for small heads: the sweep of chunk_reverse.cu and the sums of
// chunk_gradients.cu, which say what is computed, in one walk from the end.
namespace lrnn::kernels::cuda {
namespace {

using namespace small_chunks;

struct Shared {
  Tile k[2], q, d_o, e, e_lo, dv, dv_lo;
  Matrix S, S_lo;
  union {
    Square T;
    Tile out;  // when T is done with
  };
  Vectors vectors;
};
struct GateShared {
  Square decay;
  float slopes[2 * kSteps];
};

using Sums = float[4][4];  // [16 rows, 32 channels]

__device__ __forceinline__ void scale_rows(Sums& x, float upper, float lower) {
#pragma unroll
  for (int t = 0; t < 4; ++t)
    x[t][0] *= upper, x[t][1] *= upper, x[t][2] *= lower, x[t][3] *= lower;
}
// acc += (A + its lo) M for rows M of keys or queries.
__device__ __forceinline__ void add_rows(Sums& acc, const Left& a, const Tile& M) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    uint32_t b[4];
    right_across(b, M, 0, n * 16);
    multiply(acc[2 * n], a, b[0], b[1]);
    multiply(acc[2 * n + 1], a, b[2], b[3]);
  }
}
// acc = A M over value channels for a state M and its lo; A may have one too.
__device__ __forceinline__ void over_state(Sums& acc, const Tile& A, const Tile* A_lo,
                                           const Matrix& M, const Matrix& M_lo) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    uint32_t a[4], a_lo[4];
    left_rows(a, A, k * 16);
    if (A_lo) left_rows(a_lo, *A_lo, k * 16);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      uint32_t b[4];
      right_across(b, M_lo, k * 16, n * 16);
      mma(acc[2 * n], a, b[0], b[1]);
      mma(acc[2 * n + 1], a, b[2], b[3]);
      right_across(b, M, k * 16, n * 16);
      if (A_lo) {
        mma(acc[2 * n], a_lo, b[0], b[1]);
        mma(acc[2 * n + 1], a_lo, b[2], b[3]);
      }
      mma(acc[2 * n], a, b[0], b[1]);
      mma(acc[2 * n + 1], a, b[2], b[3]);
    }
  }
}
// acc += (A + its lo) M over value channels, for the operands of a state M.
__device__ __forceinline__ void over_gradient(Sums& acc, const Tile& A, const Tile& A_lo,
                                              const Left (&M)[2][2]) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    uint32_t a[4], a_lo[4];
    left_rows(a, A, k * 16);
    left_rows(a_lo, A_lo, k * 16);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const Left& m = M[k][n / 2];
      const int u = n % 2 * 2;
      mma(acc[n], a, transposed(m.lo[u]), transposed(m.lo[u + 1]));
      const uint32_t b0 = transposed(m.hi[u]), b1 = transposed(m.hi[u + 1]);
      mma(acc[n], a_lo, b0, b1);
      mma(acc[n], a, b0, b1);
    }
  }
}
__device__ __forceinline__ float row_dot(const Sums& x, int half, const Tile& rows) {
  const int i = threadIdx.x / 4 + half * 8, c = threadIdx.x % 4;
  float sum = 0;
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    const uint32_t y = *reinterpret_cast<const uint32_t*>(&rows[i][t * 8 + 2 * c]);
    sum += x[t][2 * half] * low_of(y) + x[t][2 * half + 1] * high_of(y);
  }
  return sum_lanes<4>(sum);
}
__device__ __forceinline__ void put_sums(const Sums& x, Tile& to) {
  const int g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int t = 0; t < 4; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<uint32_t*>(&to[g + half * 8][t * 8 + 2 * c]) =
          pack(x[t][2 * half], x[t][2 * half + 1]);
}

template <bool kGate>
__global__ void __launch_bounds__(32, 12)
    small_chunk_backward(DeltaProductBackward p, SmallKept kept) {
  __shared__ __align__(16) Shared shared;
  __shared__ __align__(16) GateShared gates;
  const Head at(p);
  const int lane = threadIdx.x, c = lane % 4, g = lane / 4, K = int(p.K), V = int(p.V);
  const uint16_t *const k_rows = at.rows(p.k), *const q_rows = at.rows(p.q),
                        *const do_rows = p.q.data ? at.rows(p.d_o) : nullptr;
  uint16_t *const dq_rows = p.q.data ? at.rows(p.dq) : nullptr, *const dk_rows = at.rows(p.dk),
                  *const dv_rows = at.rows(p.dv);
  const bool has_q = p.q.data != nullptr;
  const float by = float(p.scale);
  const Vectors& vectors = shared.vectors;
  const Square& decay = gates.decay;

  State G;
  read_state(
      G, p.d_final_state ? static_cast<const float*>(p.d_final_state) + at.head * K * V : nullptr,
      K, V);
  // Keys come a chunk ahead, so that T is made while all else is on its way.
  Scalars<kGate> scalars;
  const auto ask_for_keys = [&](int64_t chunk) {
    const int64_t first = chunk * kSteps;
    fetch(shared.k[chunk % 2], k_rows + first * p.k.step, p.k.step,
          int(min(int64_t(kSteps), at.steps - first)), K);
    scalars.ask(p, at, first);
  };
  const int64_t chunks = (at.steps + kSteps - 1) / kSteps;
  if (chunks > 0) ask_for_keys(chunks - 1);
  copy_commit();
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const int64_t first = chunk * kSteps;
    const int count = int(min(int64_t(kSteps), at.steps - first));
    const Queries queries(p, first, count);
    const int64_t errors = (at.error + first) * V,
                  state = ((at.slot0 + chunk) * p.H + at.h) * K * V;
    const Tile& keys = shared.k[chunk % 2];
    if (has_q) {
      fetch(shared.q, q_rows + queries.token * p.q.token, p.q.token, queries.rows, K);
      fetch(shared.d_o, do_rows + queries.token * p.d_o.token, p.d_o.token, queries.rows, V);
    }
    fetch(shared.e, kept.error + errors, V, count, V);
    fetch(shared.e_lo, kept.error_lo + errors, V, count, V);
    const int kept_rows = chunk > 0 || p.state ? V : 0;  // a state of zero was not kept
    fetch(shared.S, kept.states + state, K, kept_rows, K);
    fetch(shared.S_lo, kept.states_lo + state, K, kept_rows, K);
    copy_commit();
    fill_vectors(shared.vectors, gates.decay, p, scalars, queries);
    if (chunk > 0) ask_for_keys(chunk - 1);
    copy_commit();
    copy_wait<2>();
    __syncwarp();
    invert<kGate>(shared.T, keys, vectors, decay);

    // dD = diag(r) K G' + P^T dO, and src = e G'^T while that G is here.
    float dD[2][2][4] = {}, at_end = 0;
    Sums src = {};
    {
      Left a[2][2];
      operands(a, G);
      times_keys(dD, a, keys);
      copy_wait<1>();
      __syncwarp();
      over_gradient(src, shared.e, shared.e_lo, a);
    }
    if constexpr (kGate) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        scale_columns(dD[m], vectors, kAfter);
#pragma unroll
        for (int t = 0; t < 4; ++t)
#pragma unroll
          for (int half = 0; half < 2; ++half) {  // <G', S>
            const int v = m * 16 + half * 8 + g, k = t * 8 + 2 * c;
            const uint32_t x = *reinterpret_cast<const uint32_t*>(&shared.S[v][k]),
                           y = *reinterpret_cast<const uint32_t*>(&shared.S_lo[v][k]);
            at_end += G[m][t][2 * half] * (low_of(x) + low_of(y)) +
                      G[m][t][2 * half + 1] * (high_of(x) + high_of(y));
          }
      }
      const float all = vectors.of[kBefore][kSteps - 1];
      at_end *= all;
      scale(G, all);
    }
    if (has_q) {
      float P[2][4] = {};  // transposed: [micro-steps, queries]
      rows_by_rows(P, keys, shared.q);
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int r = t * 8 + 2 * c + u, last = r < queries.rows ? int(queries.at(r)) : -1;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int j = g + half * 8;
            float& x = P[t][2 * half + u];
            x = j <= last ? by * x : 0.f;
            if (kGate && j <= last) x *= decay[last][j];
          }
        }
      Left read[2];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        uint32_t a[4];
        left_across(a, shared.d_o, m * 16);
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          Right b;
          b.from(make_float2(P[0][2 * t], P[0][2 * t + 1]),
                 make_float2(P[1][2 * t], P[1][2 * t + 1]));
          mma(dD[m][t], a, b.lo[0], b.lo[1]);
          mma(dD[m][t], a, b.hi[0], b.hi[1]);
        }
        const float2 x = vectors.pair(kRead, 0), y = vectors.pair(kRead, 1);
        const float left[4] = {x.x * low_of(a[0]), x.y * high_of(a[0]), x.x * low_of(a[1]),
                               x.y * high_of(a[1])};
        const float right[4] = {y.x * low_of(a[2]), y.y * high_of(a[2]), y.x * low_of(a[3]),
                                y.y * high_of(a[3])};
        read[m].from(left, right);
      }
      small_chunks::add_rows(G, read, shared.q);
    }

    // Y = T^T dD, dV = beta Y, and G loses what is erased.
    {
      float Y[2][2][4] = {};
      Left d[2];
#pragma unroll
      for (int m = 0; m < 2; ++m) d[m].from(dD[m][0], dD[m][1]);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int j = t * 8 + g;
        Right b;
        b.from(make_float2(shared.T[2 * c][j], shared.T[2 * c + 1][j]),
               make_float2(shared.T[8 + 2 * c][j], shared.T[9 + 2 * c][j]));
#pragma unroll
        for (int m = 0; m < 2; ++m) multiply(Y[m][t], d[m], b);
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        scale_columns(Y[m], vectors, kBeta);
        d[m].from(Y[m][0], Y[m][1]);
        put_across(d[m].hi, shared.dv, m * 16);
        put_across(d[m].lo, shared.dv_lo, m * 16);
        if constexpr (kGate) scale_columns(Y[m], vectors, kBefore);
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int u = 0; u < 4; ++u) Y[m][t][u] = -Y[m][t][u];
        d[m].from(Y[m][0], Y[m][1]);
      }
      small_chunks::add_rows(G, d, keys);
    }
    __syncwarp();
    store(shared.dv, dv_rows + first * p.dv.step, p.dv.step, count, V);

    // X = dO e^T and dQ = X K + dO S^T.
    Left X;
    if (has_q) {
      float x[2][4] = {};
      rows_by_rows(x, shared.d_o, shared.e_lo);
      rows_by_rows(x, shared.d_o, shared.e);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = g + half * 8, last = r < queries.rows ? int(queries.at(r)) : -1;
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int j = t * 8 + 2 * c + u;
            float& y = x[t][2 * half + u];
            y = j <= last ? by * vectors.of[kBeta][j] * y : 0.f;
            if (kGate && j <= last) y *= decay[last][j];
          }
      }
      X.from(x[0], x[1]);
      Sums dq = {};
      over_state(dq, shared.d_o, nullptr, shared.S, shared.S_lo);
      scale_rows(dq, vectors.of[kRead][g], vectors.of[kRead][g + 8]);
      add_rows(dq, X, keys);
      if constexpr (kGate)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float slope = row_dot(dq, half, shared.q);
          if (c == 0) gates.slopes[kSteps + g + half * 8] = slope;
        }
      put_sums(dq, shared.out);
      __syncwarp();
      store(shared.out, dq_rows + queries.token * p.dq.token, p.dq.token, queries.rows, K);
      __syncwarp();
    }

    // E = dV e^T, dbeta, and dK = er + src.
    Left E;
    {
      float x[2][4] = {};
      rows_by_rows(x, shared.dv, shared.e_lo);
      rows_by_rows(x, shared.dv_lo, shared.e);
      rows_by_rows(x, shared.dv, shared.e);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = g + half * 8;
        if ((g & ~1) == 2 * c && i < count)  // the diagonal
          static_cast<float*>(
              p.dbeta)[((at.span.b * p.T + at.span.t0) * p.N + first + i) * p.H + at.h] =
              (g & 1 ? x[half][2 * half + 1] : x[half][2 * half]) / vectors.of[kBeta][i];
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const int j = t * 8 + 2 * c + u;
            float& y = x[t][2 * half + u];
            y = j < i ? -vectors.of[kBeta][j] * y : 0.f;
            if (kGate && j < i) y *= decay[i][j];
          }
      }
      E.from(x[0], x[1]);
    }
    Sums er = {};
    over_state(er, shared.dv, &shared.dv_lo, shared.S, shared.S_lo);
    scale_rows(er, -vectors.of[kBefore][g], -vectors.of[kBefore][g + 8]);
    add_rows(er, E, keys);
    scale_rows(src, vectors.of[kAfter][g] * vectors.of[kBeta][g],
               vectors.of[kAfter][g + 8] * vectors.of[kBeta][g + 8]);
    if constexpr (kGate) {
      const float sum = row_dot(src, 0, keys) + row_dot(src, 1, keys);
      if (c == 0) at_end += sum;
    }
    if (has_q) add_rows(src, transposed(X), shared.q);
    add_rows(src, transposed(E), keys);
    if constexpr (kGate) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float slope = row_dot(er, half, keys) - row_dot(src, half, keys);
        if (c == 0) gates.slopes[g + half * 8] = slope;
      }
      at_end = sum_lanes<32>(at_end);
      __syncwarp();
      const int64_t s = blockIdx.x / unsigned(p.H);
      sum_up_gates(p, at.span, Slot{s, first, count}, at.h, at_end, [&](int i) {
        const int r = queries.row(i);
        return gates.slopes[i] + (r >= 0 ? gates.slopes[kSteps + r] : 0.f);
      });
    }
#pragma unroll
    for (int t = 0; t < 4; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) er[t][u] += src[t][u];
    put_sums(er, shared.out);
    __syncwarp();
    store(shared.out, dk_rows + first * p.dk.step, p.dk.step, count, K);
    __syncwarp();
  }
  if (p.dstate) write_state(G, static_cast<float*>(p.dstate) + at.head * K * V, K, V);
}

}  // namespace

void small_chunks_backward(const DeltaProductBackward& p, const SmallKept& kept, void* stream) {
  if (p.S * p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  auto* kernel = p.log_gate ? small_chunk_backward<true> : small_chunk_backward<false>;
  kernel<<<unsigned(p.S * p.H), 32, 0, on>>>(p, kept);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
