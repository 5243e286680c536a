#include "kernels/cuda/delta_product/one_chunk.cuh"

// With Y = (I + L)^-T dD:  dV = diag(beta) Y,  and for dE_ij = -beta_j <dv_i, e_j>, j < i, and
// X_ti = scale beta_i <do_t, e_i>, i no later than t:
//   dQ = X K,  dK = (dE + dE^T) K + X^T Q,  dbeta_i = <dv_i, e_i> / beta_i
// The gradient G of the final state adds K G to dD and diag(beta) e G^T to dK.
namespace lrnn::kernels::cuda {
namespace {

using namespace one_chunk;

struct Places {  // in bytes
  int steps, square, query_rows, k, q, d_o, L, P, e, dv, beta, all;
  __host__ __device__ Places(int blocks, int queries)
      : steps(blocks * 16),
        square(row_bytes(steps)),
        query_rows(queries),
        k(0),
        // The queries, and the inverses of diagonal blocks when P is made.
        q(k + steps * kWide),
        d_o(q + larger(query_rows * kWide, blocks * int(sizeof(Square)))),
        // L and P, then the errors, then dE + dE^T and X.
        L(d_o + query_rows * kWide),
        P(L + 2 * steps * square),
        e(L),
        // dV, then what G adds to dK, in float32.
        dv(L + larger(2 * (steps + query_rows) * square, 2 * steps * kWide)),
        beta(dv + 2 * steps * kWide),
        all(beta + steps * 4) {}
  static __host__ __device__ int larger(int a, int b) { return a > b ? a : b; }
};

// This warp's tiles of dE on and below the diagonal, and of X.
template <int kBlocks> struct Gradients {
  static constexpr int kTiles = kBlocks * (kBlocks + 1) / 2, kOwn = (kTiles + kWarps - 1) / kWarps,
                       kOwnX = (kBlocks * kBlocks + kWarps - 1) / kWarps;
  Tile E[kOwn], X[kOwnX];

  static __device__ __forceinline__ void block(int n, int& i, int& j) {
    i = 0;
    while ((i + 1) * (i + 2) / 2 <= n) ++i;
    j = n - i * (i + 1) / 2;
  }
};

template <int kBlocks>
__global__ void __launch_bounds__(kThreads, 1)
    whole_backward(const DeltaProductBackward p, const uint16_t* error_lo) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Head at(p);
  const int K = int(p.K), V = int(p.V), query_rows = round16(at.queries);
  const Places places(kBlocks, query_rows);
  const uint32_t base = shared_address(memory);
  const auto rows_at = [&](int place) { return Matrix{base + place, kWide}; };
  const int square = places.square, steps = places.steps;
  const Matrix k = rows_at(places.k), q = rows_at(places.q), d_o = rows_at(places.d_o);
  const Split L{{base + places.L, square}, {base + places.L + steps * square, square}},
      P{{base + places.P, square}, {base + places.P + query_rows * square, square}},
      e{rows_at(places.e), rows_at(places.e + steps * kWide)},
      dv{rows_at(places.dv), rows_at(places.dv + steps * kWide)};
  Square* const T = reinterpret_cast<Square*>(memory + places.q);
  float* const beta = reinterpret_cast<float*>(memory + places.beta);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  const int own = warp * 16;  // channels of this warp
  const uint16_t* const q_rows = at.rows(p.q);
  fetch(k, at.rows(p.k), p.k.step, steps, at.steps, K);
  if (at.queries) {
    fetch(q, q_rows, p.q.token, query_rows, at.queries, K);
    fetch(d_o, at.rows(p.d_o), p.d_o.token, query_rows, at.queries, V);
  }
  copy_commit();
  load_beta(beta, p, at, steps);
  copy_wait<0>();
  __syncthreads();
  fill<kBlocks>(L, P, k, q, beta, at, float(p.scale));
  __syncthreads();
  if (warp < kBlocks) invert(T[warp], k, beta, own);
  __syncthreads();

  const float* const G =
      p.d_final_state ? static_cast<const float*>(p.d_final_state) + (at.s * p.H + at.h) * K * V
                      : nullptr;
  if (own < V) {
    Left y[kBlocks];
#pragma unroll
    for (int b = kBlocks - 1; b >= 0; --b) {
      Tile x = {}, less = {};
      for (int t0 = 0; t0 < at.queries; t0 += 16) {
        uint32_t a[4], r[4], r_lo[4];
        left_across(a, d_o, t0, own);
        right_across(r, P.hi, t0, b * 16);
        right_across(r_lo, P.lo, t0, b * 16);
        multiply(x, a, r_lo);
        multiply(x, a, r);
      }
      if (G)
        for (int key = 0; key < K; key += 16) {
          Tile gradient;
          each([&](int t, int u, int row, int column) {
            gradient[t][u] = G[(key + column) * V + own + row];
          });
          Left a;
          a.from(gradient);
          uint32_t r[4];
          right(r, k, b * 16, key);
          multiply(x, a, r);
        }
#pragma unroll
      for (int a = b + 1; a < kBlocks; ++a) {
        uint32_t r[4], r_lo[4];
        right_across(r, L.hi, a * 16, b * 16);
        right_across(r_lo, L.lo, a * 16, b * 16);
        multiply(less, y[a], r, r_lo);
      }
#pragma unroll
      for (int t = 0; t < 2; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) x[t][u] -= less[t][u];
      apply<true>(x, T[b]);
      // L has beta of the rows that Y belongs to, so Y itself goes on.
      y[b].from(x);
      each([&](int t, int u, int, int column) { x[t][u] *= beta[b * 16 + column]; });
      Left out;
      out.from(x);
      uint16_t* const to = at.rows(p.dv);
#pragma unroll
      for (int part = 0; part < 2; ++part)
        each_across(part ? out.lo : out.hi, [&](int row, int channel, uint32_t word) {
          const int i = b * 16 + row;
          store_shared((part ? dv.lo : dv.hi).at(i, own + channel), word);
          if (!part && i < at.steps)
            *reinterpret_cast<uint32_t*>(to + i * p.dv.step + own + channel) = word;
        });
    }
  } else {
    for (int n = lane; n < steps * 8; n += 32) {
      store_shared(dv.hi.at(n / 8, own + n % 8 * 2), 0u);
      store_shared(dv.lo.at(n / 8, own + n % 8 * 2), 0u);
    }
  }
  __syncthreads();

  fetch(e.hi, static_cast<const uint16_t*>(p.error) + at.error * V, V, steps, at.steps, V);
  fetch(e.lo, error_lo + at.error * V, V, steps, at.steps, V);
  if (at.queries) fetch(q, q_rows, p.q.token, query_rows, at.queries, K);
  copy_commit();
  copy_wait<0>();
  __syncthreads();
  using Own = Gradients<kBlocks>;
  Own gradients;
  const int x_tiles = query_rows / 16 * kBlocks;
#pragma unroll
  for (int m = 0; m < Own::kOwn; ++m) {
    const int n = warp + m * kWarps;
    Tile& x = gradients.E[m];
    each([&](int t, int u, int, int) { x[t][u] = 0; });
    if (n >= Own::kTiles) continue;
    int i, j;
    Own::block(n, i, j);
    rows_by_rows(x, dv.hi, e.lo, i * 16, j * 16);
    rows_by_rows(x, dv.lo, e.hi, i * 16, j * 16);
    rows_by_rows(x, dv.hi, e.hi, i * 16, j * 16);
    each([&](int t, int u, int row, int column) {
      const int a = i * 16 + row, b = j * 16 + column;
      if (a == b && a < at.steps) static_cast<float*>(p.dbeta)[at.scalar(p, a)] = x[t][u] / beta[a];
      x[t][u] = b < a ? -beta[b] * x[t][u] : 0.f;
    });
  }
#pragma unroll
  for (int m = 0; m < Own::kOwnX; ++m) {
    const int n = warp + m * kWarps;
    Tile& x = gradients.X[m];
    each([&](int t, int u, int, int) { x[t][u] = 0; });
    if (n >= x_tiles) continue;
    const int t0 = n / kBlocks * 16, j = n % kBlocks * 16;
    rows_by_rows(x, d_o, e.lo, t0, j);
    rows_by_rows(x, d_o, e.hi, t0, j);
    each([&](int t, int u, int row, int column) {
      x[t][u] = j + column <= at.last(t0 + row) ? float(p.scale) * beta[j + column] * x[t][u] : 0.f;
    });
  }
  __syncthreads();

  // What G adds to dK, where dV was.
  float* const more = reinterpret_cast<float*>(memory + places.dv);
  if (G && own < K)
    for (int i = 0; i < steps; i += 16) {
      Tile x = {};
      for (int channel = 0; channel < V; channel += 16) {
        uint32_t a[4], a_lo[4], r[4], r_lo[4];
        left(a, e.hi, i, channel);
        left(a_lo, e.lo, i, channel);
#pragma unroll
        for (int t = 0; t < 2; ++t)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float2 z = *reinterpret_cast<const float2*>(G + (own + t * 8 + g) * V + channel +
                                                              half * 8 + 2 * c);
            r[2 * t + half] = pack(z.x, z.y);
            r_lo[2 * t + half] = pack_lo(z.x, z.y, r[2 * t + half]);
          }
        multiply(x, a, r_lo);
        multiply(x, a_lo, r);
        multiply(x, a, r);
      }
      each([&](int t, int u, int row, int column) {
        more[(i + row) * kSide + own + column] = beta[i + row] * x[t][u];
      });
    }
  if (G) __syncthreads();

    // dE and its transpose, and X, where the errors were.
#pragma unroll
  for (int m = 0; m < Own::kOwn; ++m) {
    const int n = warp + m * kWarps;
    if (n >= Own::kTiles) continue;
    int i, j;
    Own::block(n, i, j);
    each([&](int t, int u, int row, int column) {
      const int a = i * 16 + row, b = j * 16 + column;
      if (b > a) return;
      const float x = gradients.E[m][t][u];  // zero where a = b
      const uint32_t both = pack(x, 0.f);
      const auto hi = uint16_t(both), lo = uint16_t(pack_lo(x, 0.f, both));
      store_shared(L.hi.at(a, b), hi);
      store_shared(L.lo.at(a, b), lo);
      store_shared(L.hi.at(b, a), hi);
      store_shared(L.lo.at(b, a), lo);
    });
  }
#pragma unroll
  for (int m = 0; m < Own::kOwnX; ++m) {
    const int n = warp + m * kWarps;
    if (n < x_tiles) put(gradients.X[m], P, n / kBlocks * 16, n % kBlocks * 16);
  }
  __syncthreads();
  if (own >= K) return;
  const auto store_rows = [&](const Tile& x, uint16_t* to, int64_t step, int i, int inside) {
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = i + g + half * 8;
        if (row < inside)
          *reinterpret_cast<uint32_t*>(to + row * step + own + t * 8 + 2 * c) =
              pack(x[t][2 * half], x[t][2 * half + 1]);
      }
  };
  uint16_t* const dk = at.rows(p.dk);
  for (int i = 0; i < steps; i += 16) {
    Tile x;
    each([&](int t, int u, int row, int column) {
      x[t][u] = G ? more[(i + row) * kSide + own + column] : 0.f;
    });
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t a[4], a_lo[4], r[4];
      left(a, L.hi, i, b * 16);
      left(a_lo, L.lo, i, b * 16);
      right_across(r, k, b * 16, own);
      multiply(x, a_lo, r);
      multiply(x, a, r);
    }
    for (int t0 = 0; t0 < at.queries; t0 += 16) {
      uint32_t a[4], a_lo[4], r[4];
      left_across(a, P.hi, t0, i);
      left_across(a_lo, P.lo, t0, i);
      right_across(r, q, t0, own);
      multiply(x, a_lo, r);
      multiply(x, a, r);
    }
    store_rows(x, dk, p.dk.step, i, at.steps);
  }
  uint16_t* const dq = at.queries ? at.rows(p.dq) : nullptr;
  for (int t0 = 0; t0 < at.queries; t0 += 16) {
    Tile x = {};
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      uint32_t a[4], a_lo[4], r[4];
      left(a, P.hi, t0, b * 16);
      left(a_lo, P.lo, t0, b * 16);
      right_across(r, k, b * 16, own);
      multiply(x, a_lo, r);
      multiply(x, a, r);
    }
    store_rows(x, dq, p.dq.token, t0, at.queries);
  }
}

}  // namespace

// Shared memory must do for both directions.
bool one_chunk_fits(const DeltaProductInputs& p) {
  const int64_t steps = p.T * p.N;
  if (p.type != Type::kBFloat16 || p.log_gate || p.state || p.cu_seqlens || steps == 0 ||
      steps > kMostBlocks * 16 || p.K > kSide || p.V > kSide || p.K % 16 != 0 || p.V % 16 != 0)
    return false;
  const int count = steps <= 3 * 16 ? 3 : kMostBlocks;
  int device = 0, most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return Places(count, round16(int(p.T))).all <= most;
}

void one_chunk_backward(const DeltaProductBackward& p, const uint16_t* error_lo, void* stream) {
  launch<Places>(p, error_lo, whole_backward<3>, whole_backward<kMostBlocks>, stream);
}

}  // namespace lrnn::kernels::cuda
