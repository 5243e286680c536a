#include "kernels/cuda/delta_product/one_chunk.cuh"

// With Y = (I + L)^-T dD:  dV = diag(beta) Y,  and for dE_ij = -beta_j <dv_i, e_j>, j < i, and
// X_ti = scale beta_i <do_t, e_i>, i no later than t:
//   dQ = X K,  dK = (dE + dE^T) K + X^T Q,  dbeta_i = <dv_i, e_i> / beta_i
// The gradient G of the final state adds K G to dD and diag(beta) e G^T to dK.
namespace lrnn::kernels::cuda {
namespace {

using namespace one_chunk;

struct Places : ChunkSize {  // in bytes
  // The queries, and the inverses of diagonal blocks when P is made.
  const int k = 0, q = k + steps * kWide, T = q,
            d_o = q + larger(query_rows * kWide, blocks*int(sizeof(Square)));
  // L and P, then the errors, then dE + dE^T and X.
  const int L = d_o + query_rows * kWide, P = L + 2 * steps * square, e = L;
  // dV, then what G adds to dK, in float32.
  const int dv = L + larger(2 * (steps + query_rows) * square, 2 * steps * kWide),
            beta = dv + 2 * steps * kWide, all = beta + steps * 4;
  static __host__ __device__ int larger(int a, int b) { return a > b ? a : b; }
};

// Rows i.. of a tile to memory, `step` apart, from channel `own` on.
__device__ __forceinline__ void store_rows(const Tile& x, uint16_t* to, int64_t step, int i,
                                           int inside) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4, own = threadIdx.x / 32 * 16;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = i + g + half * 8;
      if (row < inside)
        *reinterpret_cast<uint32_t*>(to + row * step + own + t * 8 + 2 * c) =
            pack(x[t][2 * half], x[t][2 * half + 1]);
    }
}

// A head in the hands of a block; a warp has 16 channels, first of the values, then of the keys.
template <int kBlocks> struct Backward {
  static constexpr int kTiles = kBlocks * (kBlocks + 1) / 2, kOwn = (kTiles + kWarps - 1) / kWarps,
                       kOwnX = (kBlocks * kBlocks + kWarps - 1) / kWarps;
  const DeltaProductBackward& p;
  unsigned char* memory;
  const Head at{p};
  const int K = int(p.K), V = int(p.V), query_rows = round16(at.queries);
  const Places places{kBlocks, query_rows};
  const Shared shared{memory, places};
  const Matrix d_o = wide(places.d_o);
  const SplitMatrix e{wide(places.e), wide(places.e + places.steps * kWide)},
      dv{wide(places.dv), wide(places.dv + places.steps * kWide)};
  float* const more = reinterpret_cast<float*>(memory + places.dv);  // what G adds to dK
  // The gradient of the final state, or null.
  const float* const G =
      p.d_final_state ? static_cast<const float*>(p.d_final_state) + (at.s * p.H + at.h) * K * V
                      : nullptr;
  const int warp = threadIdx.x / 32, own = warp * 16;
  Tile E[kOwn] = {}, X[kOwnX] = {};  // this warp's tiles of dE on and below the diagonal, and of X

  __device__ __forceinline__ Matrix wide(int place) const {
    return {shared_address(memory) + place, kWide};
  }
  __device__ __forceinline__ void fetch_queries() const {
    if (at.queries) fetch(shared.q, at.rows(p.q), p.q.token, query_rows, at.queries, K);
  }
  __device__ __forceinline__ void fetch_inputs() const {
    fetch(shared.k, at.rows(p.k), p.k.step, places.steps, at.steps, K);
    fetch_queries();
    if (at.queries) fetch(d_o, at.rows(p.d_o), p.d_o.token, query_rows, at.queries, V);
    copy_commit();
    load_beta(shared.beta, at, places.steps);
  }
  // The errors, where L and P were, and the queries again, where T was.
  __device__ __forceinline__ void fetch_errors(const uint16_t* error_lo) const {
    fetch(e.hi, static_cast<const uint16_t*>(p.error) + at.error * V, V, places.steps, at.steps, V);
    fetch(e.lo, error_lo + at.error * V, V, places.steps, at.steps, V);
    fetch_queries();
    copy_commit();
  }

  // dD of block b: P^T dO and K G, less L^T times the Y of later blocks.
  __device__ __forceinline__ void gather(Tile& x, const Fragment<2> (&y)[kBlocks], int b) const {
    Tile less = {};
    for (int t0 = 0; t0 < at.queries; t0 += 16)
      multiply_small_first(x, d_o.a_columns(own, t0), shared.P.b_columns(t0, b * 16));
    if (G)
#pragma unroll 2
      for (int key = 0; key < K; key += 16) {
        Tile gradient;
        each([&](int t, int u, int row, int column) {
          gradient[t][u] = G[(key + column) * V + own + row];
        });
        multiply_small_first(x, as_fragment<2>(gradient[0], gradient[1]),
                             shared.k.b_rows(key, b * 16));
      }
#pragma unroll
    for (int a = b + 1; a < kBlocks; ++a)
      multiply_small_first(less, y[a], shared.L.b_columns(a * 16, b * 16));
    each([&](int t, int u, int, int) { x[t][u] -= less[t][u]; });
  }
  // Y, a block of micro-steps before the other, and dV, to memory and to shared memory.
  __device__ __forceinline__ void solve() const {
    if (own >= V) {
      for (int n = threadIdx.x % 32; n < places.steps * 8; n += 32) {
        store_shared(dv.hi.at(n / 8, own + n % 8 * 2), 0u);
        store_shared(dv.lo.at(n / 8, own + n % 8 * 2), 0u);
      }
      return;
    }
    Fragment<2> y[kBlocks];
#pragma unroll
    for (int b = kBlocks - 1; b >= 0; --b) {
      Tile x = {};
      gather(x, y, b);
      apply<true>(x, shared.T[b]);
      // L has beta of the rows that Y belongs to, so Y itself goes on.
      y[b] = as_fragment<2>(x[0], x[1]);
      each([&](int t, int u, int, int column) { x[t][u] *= shared.beta[b * 16 + column]; });
      const auto out = as_fragment<2>(x[0], x[1]);
      uint16_t* const to = at.rows(p.dv);
#pragma unroll
      for (int part = 0; part < 2; ++part)
        each_across(out.part[part], [&](int row, int channel, uint32_t word) {
          const int i = b * 16 + row;
          store_shared((part ? dv.lo : dv.hi).at(i, own + channel), word);
          if (!part && i < at.steps)
            *reinterpret_cast<uint32_t*>(to + i * p.dv.step + own + channel) = word;
        });
    }
  }

  static __device__ __forceinline__ void block(int n, int& i, int& j) {
    i = 0;
    while ((i + 1) * (i + 2) / 2 <= n) ++i;
    j = n - i * (i + 1) / 2;
  }
  // dE and dbeta, and X, in registers.
  __device__ __forceinline__ void make_pairs() {
#pragma unroll
    for (int m = 0; m < kOwn; ++m) {
      const int n = warp + m * kWarps;
      Tile& x = E[m];
      if (n >= kTiles) continue;
      int i, j;
      block(n, i, j);
      rows_by_rows(x, dv.hi, e.lo, i * 16, j * 16);
      rows_by_rows(x, dv.lo, e.hi, i * 16, j * 16);
      rows_by_rows(x, dv.hi, e.hi, i * 16, j * 16);
      each([&](int t, int u, int row, int column) {
        const int a = i * 16 + row, b = j * 16 + column;
        if (a == b && a < at.steps)
          static_cast<float*>(p.dbeta)[at.scalar(a)] = x[t][u] / shared.beta[a];
        x[t][u] = b < a ? -shared.beta[b] * x[t][u] : 0.f;
      });
    }
#pragma unroll
    for (int m = 0; m < kOwnX; ++m) {
      const int n = warp + m * kWarps;
      Tile& x = X[m];
      if (n >= query_rows / 16 * kBlocks) continue;
      const int t0 = n / kBlocks * 16, j = n % kBlocks * 16;
      rows_by_rows(x, d_o, e.lo, t0, j);
      rows_by_rows(x, d_o, e.hi, t0, j);
      each([&](int t, int u, int row, int column) {
        x[t][u] = j + column <= at.last(t0 + row)
                      ? float(p.scale) * shared.beta[j + column] * x[t][u]
                      : 0.f;
      });
    }
  }
  // diag(beta) e G^T.
  __device__ __forceinline__ void add_final() const {
    const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
    for (int i = 0; i < kBlocks * 16; i += 16) {
      Tile x = {};
#pragma unroll 2
      for (int channel = 0; channel < V; channel += 16) {
        const auto a = e.a_rows(i, channel);
        Fragment<2> r;
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float2 z = *reinterpret_cast<const float2*>(G + (own + t * 8 + g) * V + channel +
                                                              half * 8 + 2 * c);
            r.set(2 * t + half, z.x, z.y);
          }
        multiply_small_first<2>(x, a, r);
      }
      each([&](int t, int u, int row, int column) {
        more[(i + row) * kSide + own + column] = shared.beta[i + row] * x[t][u];
      });
    }
  }
  // dE and its transpose, and X, where the errors were.
  __device__ __forceinline__ void share_pairs() const {
    const SplitMatrix& L = shared.L;
#pragma unroll
    for (int m = 0; m < kOwn; ++m) {
      const int n = warp + m * kWarps;
      if (n >= kTiles) continue;
      int i, j;
      block(n, i, j);
      each([&](int t, int u, int row, int column) {
        const int a = i * 16 + row, b = j * 16 + column;
        if (b > a) return;
        uint32_t part[2];
        split(E[m][t][u], 0.f, part);  // zero where a = b
        store_shared(L.hi.at(a, b), uint16_t(part[0]));
        store_shared(L.lo.at(a, b), uint16_t(part[1]));
        store_shared(L.hi.at(b, a), uint16_t(part[0]));
        store_shared(L.lo.at(b, a), uint16_t(part[1]));
      });
    }
#pragma unroll
    for (int m = 0; m < kOwnX; ++m) {
      const int n = warp + m * kWarps;
      if (n < query_rows / 16 * kBlocks) put(X[m], shared.P, n / kBlocks * 16, n % kBlocks * 16);
    }
  }
  // dK = (dE + dE^T) K + X^T Q and what G adds.
  __device__ __forceinline__ void make_dk() const {
    uint16_t* const dk = at.rows(p.dk);
    for (int i = 0; i < kBlocks * 16; i += 16) {
      Tile x;
      each([&](int t, int u, int row, int column) {
        x[t][u] = G ? more[(i + row) * kSide + own + column] : 0.f;
      });
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        multiply_small_first(x, shared.L.a_rows(i, b * 16), shared.k.b_columns(b * 16, own));
      for (int t0 = 0; t0 < at.queries; t0 += 16)
        multiply_small_first(x, shared.P.a_columns(i, t0), shared.q.b_columns(t0, own));
      store_rows(x, dk, p.dk.step, i, at.steps);
    }
  }
  __device__ __forceinline__ void make_dq() const {  // X K
    uint16_t* const dq = at.queries ? at.rows(p.dq) : nullptr;
    for (int t0 = 0; t0 < at.queries; t0 += 16) {
      Tile x = {};
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
        multiply_small_first(x, shared.P.a_rows(t0, b * 16), shared.k.b_columns(b * 16, own));
      store_rows(x, dq, p.dq.token, t0, at.queries);
    }
  }
};

// (I + L)^T Y = P^T dO + K G,  dV = diag(beta) Y,  dQ = X K,
// dK = (dE + dE^T) K + X^T Q + diag(beta) e G^T
template <int kBlocks>
__global__ void __launch_bounds__(kThreads, 1)
    whole_backward(const DeltaProductBackward p, const uint16_t* error_lo) {
  extern __shared__ __align__(16) unsigned char memory[];
  Backward<kBlocks> head{p, memory};
  const Shared& shared = head.shared;
  head.fetch_inputs();
  copy_wait<0>();
  __syncthreads();
  fill<kBlocks>(shared, head.at, float(p.scale));
  __syncthreads();
  if (head.warp < kBlocks) invert(shared.T[head.warp], shared.k, shared.beta, head.own);
  __syncthreads();
  head.solve();
  __syncthreads();
  head.fetch_errors(error_lo);
  copy_wait<0>();
  __syncthreads();
  head.make_pairs();
  __syncthreads();
  if (head.G && head.own < head.K) head.add_final();
  if (head.G) __syncthreads();
  head.share_pairs();
  __syncthreads();
  if (head.own >= head.K) return;
  head.make_dk();
  head.make_dq();
}

}  // namespace

// Shared memory must do for both directions.
bool one_chunk_fits(const DeltaProductInputs& p) {
  const int64_t steps = p.T * p.N;
  if (p.type != Type::kBFloat16 || p.log_gate || p.state || p.cu_seqlens || steps == 0 ||
      steps > kMostBlocks * 16 || p.K > kSide || p.V > kSide || p.K % 16 != 0 || p.V % 16 != 0)
    return false;
  const int count = steps <= 3 * 16 ? 3 : kMostBlocks;
  return Places{count, round16(int(p.T))}.all <= chip().shared;
}

void one_chunk_backward(const DeltaProductBackward& p, const uint16_t* error_lo, void* stream) {
  launch<Places>(p, error_lo, whole_backward<3>, whole_backward<kMostBlocks>, stream);
}

}  // namespace lrnn::kernels::cuda
