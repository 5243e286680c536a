#include "kernels/cuda/delta_product/one_chunk.cuh"

// D from (I + L) D = diag(beta) V, O = P D and the final state K^T D (one_chunk.h), a block a head.
namespace lrnn::kernels::cuda {
namespace {

using namespace one_chunk;

struct Places {  // in bytes
  int steps, square, k, v, q, L, P, T, beta, all;
  __host__ __device__ Places(int blocks, int query_rows)
      : steps(blocks * 16),
        square(row_bytes(steps)),
        k(0),
        v(k + steps * kWide),
        q(v + steps * kWide),
        L(q + query_rows * kWide),
        P(L + 2 * steps * square),
        T(P + 2 * query_rows * square),
        beta(T + blocks * int(sizeof(Square))),
        all(beta + steps * 4) {}
};

template <int kBlocks>
__global__ void __launch_bounds__(kThreads)
    whole_forward(const DeltaProductForward p, uint16_t* error_lo) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Head at(p);
  const int K = int(p.K), V = int(p.V), query_rows = round16(at.queries);
  const Places places(kBlocks, query_rows);
  const uint32_t base = shared_address(memory);
  const Matrix k{base + places.k, kWide}, v{base + places.v, kWide}, q{base + places.q, kWide};
  const int square = places.square;
  const Split L{{base + places.L, square}, {base + places.L + places.steps * square, square}},
      P{{base + places.P, square}, {base + places.P + query_rows * square, square}};
  Square* const T = reinterpret_cast<Square*>(memory + places.T);
  float* const beta = reinterpret_cast<float*>(memory + places.beta);
  fetch(k, at.rows(p.k), p.k.step, places.steps, at.steps, K);
  if (at.queries) fetch(q, at.rows(p.q), p.q.token, query_rows, at.queries, K);
  copy_commit();
  fetch(v, at.rows(p.v), p.v.step, places.steps, at.steps, V);
  copy_commit();
  load_beta(beta, p, at, places.steps);
  copy_wait<1>();
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  fill<kBlocks>(L, P, k, q, beta, at, float(p.scale));
  if (warp < kBlocks) invert(T[warp], k, beta, warp * 16);
  copy_wait<0>();
  __syncthreads();

  const int v0 = warp * 16;
  if (v0 >= V) return;
  Left d[kBlocks];
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    Tile x = {};
#pragma unroll
    for (int a = 0; a < b; ++a) {
      uint32_t y[4], y_lo[4];
      right(y, L.hi, b * 16, a * 16);
      right(y_lo, L.lo, b * 16, a * 16);
      multiply(x, d[a], y, y_lo);
    }
    uint32_t values[4];
    left_across(values, v, b * 16, v0);
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const uint32_t pair = values[2 * t + u / 2];
        const float value = u % 2 ? high_of(pair) : low_of(pair);
        x[t][u] = beta[b * 16 + t * 8 + 2 * c + u % 2] * value - x[t][u];
      }
    apply<false>(x, T[b]);
    d[b].from(x);
    if (p.error) {
      each([&](int t, int u, int, int column) { x[t][u] *= reciprocal(beta[b * 16 + column]); });
      Left e;
      e.from(x);
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        uint16_t* const to = part ? error_lo : static_cast<uint16_t*>(p.error);
        each_across(part ? e.lo : e.hi, [&](int row, int channel, uint32_t word) {
          const int i = b * 16 + row;
          if (i < at.steps)
            *reinterpret_cast<uint32_t*>(to + (at.error + i) * V + v0 + channel) = word;
        });
      }
    }
  }

  uint16_t* const o = at.rows(p.o);
  for (int t0 = 0; t0 < at.queries; t0 += 16) {
    Tile x = {};
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t y[4], y_lo[4];
      right(y, P.hi, t0, b * 16);
      right(y_lo, P.lo, t0, b * 16);
      multiply(x, d[b], y, y_lo);
    }
    Left out;
    out.from(x);
    each_across(out.hi, [&](int row, int channel, uint32_t word) {
      if (t0 + row < at.queries)
        *reinterpret_cast<uint32_t*>(o + (t0 + row) * p.o.token + v0 + channel) = word;
    });
  }

  float* const state = static_cast<float*>(p.final_state) + (at.s * p.H + at.h) * K * V + v0 + g;
  for (int key = 0; key < K; key += 16) {
    Tile x = {};
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t y[4];
      right_across(y, k, b * 16, key);
      multiply(x, d[b], y);
    }
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) state[(key + t * 8 + 2 * c + u % 2) * V + u / 2 * 8] = x[t][u];
  }
}

}  // namespace

void one_chunk_forward(const DeltaProductForward& p, uint16_t* error_lo, void* stream) {
  launch<Places>(p, error_lo, whole_forward<3>, whole_forward<kMostBlocks>, stream);
}

}  // namespace lrnn::kernels::cuda
