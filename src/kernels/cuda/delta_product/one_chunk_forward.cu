#include "kernels/cuda/delta_product/one_chunk.cuh"

// D from (I + L) D = diag(beta) V, O = P D and the final state K^T D (delta_product.h), a block a
// head.
namespace lrnn::kernels::cuda {
namespace {

using namespace one_chunk;

struct Places : ChunkSize {  // in bytes
  const int k = 0, v = k + steps * kWide, q = v + steps * kWide, L = q + query_rows * kWide,
            P = L + 2 * steps * square, T = P + 2 * query_rows * square,
            beta = T + blocks * int(sizeof(Square)), all = beta + steps * 4;
};

// What a warp does for its 16 value channels.
template <int kBlocks> struct Channels {
  const DeltaProductForward& p;
  const Head& at;
  const Shared& shared;
  int v0;
  Fragment<2> d[kBlocks];  // D^T, a block of micro-steps each

  // A block of micro-steps after the other: what those before leave of diag(beta) V, times T.
  __device__ __forceinline__ void solve(const Matrix& v, uint16_t* error_lo) {
    const int c = threadIdx.x % 4;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      Tile x = {};
#pragma unroll
      for (int a = 0; a < b; ++a) multiply_small_first(x, d[a], shared.L.b_rows(a * 16, b * 16));
      const auto values = v.a_columns(v0, b * 16);
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const uint32_t pair = values.part[0][2 * t + u / 2];
          const float value = u % 2 ? high_of(pair) : low_of(pair);
          x[t][u] = shared.beta[b * 16 + t * 8 + 2 * c + u % 2] * value - x[t][u];
        }
      apply<false>(x, shared.T[b]);
      d[b] = as_fragment<2>(x[0], x[1]);
      if (p.error) keep_error(x, b * 16, error_lo);
    }
  }
  // e = D / beta.
  __device__ __forceinline__ void keep_error(Tile& x, int first, uint16_t* error_lo) const {
    each(
        [&](int t, int u, int, int column) { x[t][u] *= reciprocal(shared.beta[first + column]); });
    const auto e = as_fragment<2>(x[0], x[1]);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      uint16_t* const to = part ? error_lo : static_cast<uint16_t*>(p.error);
      each_across(e.part[part], [&](int row, int channel, uint32_t word) {
        const int i = first + row;
        if (i < at.steps)
          *reinterpret_cast<uint32_t*>(to + (at.error + i) * int(p.V) + v0 + channel) = word;
      });
    }
  }
  __device__ __forceinline__ void read() const {  // O = P D
    uint16_t* const o = at.rows(p.o);
    for (int t0 = 0; t0 < at.queries; t0 += 16) {
      Tile x = {};
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) multiply_small_first(x, d[b], shared.P.b_rows(b * 16, t0));
      each_across(as_fragment<1>(x[0], x[1]).part[0], [&](int row, int channel, uint32_t word) {
        if (t0 + row < at.queries)
          *reinterpret_cast<uint32_t*>(o + (t0 + row) * p.o.token + v0 + channel) = word;
      });
    }
  }
  __device__ __forceinline__ void write_state() const {  // K^T D
    const int K = int(p.K), V = int(p.V), g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
    float* const state = static_cast<float*>(p.final_state) + (at.s * p.H + at.h) * K * V + v0 + g;
#pragma unroll 2
    for (int key = 0; key < K; key += 16) {
      Tile x = {};
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        multiply_small_first(x, d[b], shared.k.b_columns(b * 16, key));
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) state[(key + t * 8 + 2 * c + u % 2) * V + u / 2 * 8] = x[t][u];
    }
  }
};

// (I + L) D = diag(beta) V,  O = P D,  S = K^T D
template <int kBlocks>
__global__ void __launch_bounds__(kThreads)
    whole_forward(const DeltaProductForward p, uint16_t* error_lo) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Head at{p};
  const int K = int(p.K), V = int(p.V), query_rows = round16(at.queries);
  const Places places{kBlocks, query_rows};
  const Shared shared(memory, places);
  const Matrix v{shared_address(memory) + places.v, kWide};
  fetch(shared.k, at.rows(p.k), p.k.step, places.steps, at.steps, K);
  if (at.queries) fetch(shared.q, at.rows(p.q), p.q.token, query_rows, at.queries, K);
  copy_commit();
  fetch(v, at.rows(p.v), p.v.step, places.steps, at.steps, V);
  copy_commit();
  load_beta(shared.beta, at, places.steps);
  copy_wait<1>();
  __syncthreads();
  const int warp = threadIdx.x / 32;
  fill<kBlocks>(shared, at, float(p.scale));
  if (warp < kBlocks) invert(shared.T[warp], shared.k, shared.beta, warp * 16);
  copy_wait<0>();
  __syncthreads();

  if (warp * 16 >= V) return;
  Channels<kBlocks> own{p, at, shared, warp * 16};
  own.solve(v, error_lo);
  own.read();
  own.write_state();
}

}  // namespace

void one_chunk_forward(const DeltaProductForward& p, uint16_t* error_lo, void* stream) {
  launch<Places>(p, error_lo, whole_forward<3>, whole_forward<kMostBlocks>, stream);
}

}  // namespace lrnn::kernels::cuda
