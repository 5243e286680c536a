#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/small_chunks.cuh"

// Forward in chunks for small heads: D = T diag(beta) (V - diag(a) K S) and so on, as in chunk.h.
namespace lrnn::kernels::cuda {
namespace {

using namespace small_chunks;

struct Stage {
  Tile k, q, v;
};

template <bool kGate>
__global__ void __launch_bounds__(32) small_chunk_forward(DeltaProductForward p, SmallKept kept) {
  __shared__ __align__(16) Stage stage[2];
  __shared__ __align__(16) Tile out;
  __shared__ __align__(16) Matrix state;
  __shared__ __align__(16) Square T, decay;
  __shared__ __align__(16) Vectors vectors;
  const Head at(p);
  const int c = threadIdx.x % 4, g = threadIdx.x / 4, K = int(p.K), V = int(p.V);
  const uint16_t *const k_rows = at.rows(p.k), *const v_rows = at.rows(p.v),
                        *const q_rows = at.rows(p.q);
  uint16_t* const o_rows = at.rows(p.o);
  const bool has_q = p.q.data != nullptr;

  Scalars<kGate> scalars;
  const auto ask_for = [&](int64_t first) {
    Stage& to = stage[first / kSteps % 2];
    const int count = int(min(int64_t(kSteps), at.steps - first));
    const Queries queries(p, first, count);
    fetch(to.k, k_rows + first * p.k.step, p.k.step, count, K);
    fetch(to.v, v_rows + first * p.v.step, p.v.step, count, V);
    if (has_q) fetch(to.q, q_rows + queries.token * p.q.token, p.q.token, queries.rows, K);
    scalars.ask(p, at, first);
  };

  State S;
  read_state(S, p.state ? static_cast<const float*>(p.state) + at.head * K * V : nullptr, K, V);
  if (at.steps > 0) ask_for(0);
  copy_commit();
  for (int64_t first = 0; first < at.steps; first += kSteps) {
    const int count = int(min(int64_t(kSteps), at.steps - first));
    const Queries queries(p, first, count);
    const auto& [k, q, v] = stage[first / kSteps % 2];
    fill_vectors(vectors, decay, p, scalars, queries);
    if (first + kSteps < at.steps) ask_for(first + kSteps);
    copy_commit();
    Left s[2][2];
    operands(s, S);
    if (kept.states && (first > 0 || p.state)) {  // backward knows a state of zero
      const int64_t to = ((at.slot0 + first / kSteps) * p.H + at.h) * K * V;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int n = 0; n < 2; ++n) put(part ? s[m][n].lo : s[m][n].hi, &state[m * 16], n * 16);
        __syncwarp();
        store(state, (part ? kept.states_lo : kept.states) + to, K, V, K);
        __syncwarp();
      }
    }
    copy_wait<1>();
    __syncwarp();
    invert<kGate>(T, k, vectors, decay);

    // R = beta (v - a K S), then D = T R.
    float R[2][2][4] = {}, D[2][2][4] = {};
    times_keys(R, s, k);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      uint32_t values[4];
      left_across(values, v, m * 16);
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        float(&x)[4] = R[m][t];
        const float2 beta = vectors.pair(kBeta, t);
        float2 before = make_float2(1, 1);
        if constexpr (kGate) before = vectors.pair(kBefore, t);
        x[0] = beta.x * (low_of(values[2 * t]) - before.x * x[0]);
        x[1] = beta.y * (high_of(values[2 * t]) - before.y * x[1]);
        x[2] = beta.x * (low_of(values[2 * t + 1]) - before.x * x[2]);
        x[3] = beta.y * (high_of(values[2 * t + 1]) - before.y * x[3]);
      }
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      Right b;
      b.from(*reinterpret_cast<const float2*>(&T[t * 8 + g][2 * c]),
             *reinterpret_cast<const float2*>(&T[t * 8 + g][8 + 2 * c]));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        Left r;
        r.from(R[m][0], R[m][1]);
        multiply(D[m][t], r, b);
      }
    }
    Left d[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) d[m].from(D[m][0], D[m][1]);

    if (has_q) {  // O = scale a Q S + P D
      float P[2][4] = {}, O[2][2][4] = {};
      rows_by_rows(P, q, k);
      const bool all = queries.rows > 8;
      times_keys(O, s, q, all);
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
            if (kGate && j <= last) x *= decay[last][j];
          }
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        scale_columns(O[m], vectors, kRead);
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          if (t == 1 && !all) continue;
          Right b;
          b.from(make_float2(P[0][2 * t], P[0][2 * t + 1]),
                 make_float2(P[1][2 * t], P[1][2 * t + 1]));
          multiply(O[m][t], d[m], b);
        }
        Left o;
        o.from(O[m][0], O[m][1]);
        put_across(o.hi, out, m * 16);
      }
      __syncwarp();
      store(out, o_rows + queries.token * p.o.token, p.o.token, queries.rows, V);
      __syncwarp();
    }

    if constexpr (kGate) {
      scale(S, vectors.of[kBefore][kSteps - 1]);
      float after[2][2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int u = 0; u < 4; ++u) after[m][t][u] = D[m][t][u];
        scale_columns(after[m], vectors, kAfter);
        d[m].from(after[m][0], after[m][1]);
      }
    }
    add_rows(S, d, k);

    if (kept.error) {
      Left e[2];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const float2 beta = vectors.pair(kBeta, t);
          const float x = reciprocal(beta.x), y = reciprocal(beta.y);
          D[m][t][0] *= x, D[m][t][1] *= y, D[m][t][2] *= x, D[m][t][3] *= y;
        }
        e[m].from(D[m][0], D[m][1]);
      }
      const int64_t to = (at.error + first) * V;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
#pragma unroll
        for (int m = 0; m < 2; ++m) put_across(part ? e[m].lo : e[m].hi, out, m * 16);
        __syncwarp();
        store(out, (part ? kept.error_lo : kept.error) + to, V, count, V);
        __syncwarp();
      }
    }
    __syncwarp();
  }
  write_state(S, static_cast<float*>(p.final_state) + at.head * K * V, K, V);
}

}  // namespace

void small_chunks_forward(const DeltaProductForward& p, const SmallKept& kept, void* stream) {
  if (p.S * p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  auto* kernel = p.log_gate ? small_chunk_forward<true> : small_chunk_forward<false>;
  kernel<<<unsigned(p.S * p.H), 32, 0, on>>>(p, kept);
  check_launch("delta_product");
}

int64_t small_chunks_slots(const DeltaProductInputs& p) { return chunk_slots(p, kSteps); }

}  // namespace lrnn::kernels::cuda
