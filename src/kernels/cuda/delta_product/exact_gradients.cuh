#pragma once
#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/exact.cuh"

// What the two kernels that sum up the exact gradients share, with a gate per head
// (exact_gradients.cu) and with one per key channel (exact_channel_gradients.cu): a chunk in shared
// memory, and the products of pairs of its micro-steps over the values.
namespace lrnn::kernels::cuda::exact {

constexpr int kTile = 32, kPad = kTile + 4;
constexpr int kThreads = 256, kWarps = kThreads / 32;

inline int64_t padded(int64_t V) { return (V + kTile - 1) / kTile * kTile + 4; }

template <class R> struct Tiles {  // of which none depends on V
  alignas(16) R S[kTile][kPad], G[kTile][kPad];
  alignas(16) R k[kTile][kPad], q[kTile][kPad];
  R X[kTile][kTile + 1], E[kTile][kTile + 1], decay[kTile][kTile + 1];
  R beta[kTile], gate[kTile], before[kTile], after[kTile], slope[kTile], ends_dot[kWarps];
  bool begins[kTile], ends[kTile];
  int64_t token[kTile], step[kTile];
};

// Calls f.template operator()<Io, R>(), the types of rows and of what is computed.
template <class F> void with_types(Type type, F&& f) {
  if (type == Type::kFloat64) return f.template operator()<double, double>();
  type == Type::kFloat32 ? f.template operator()<float, float>()
                         : f.template operator()<Bf16, float>();
}

template <class R> struct ChannelTiles : Tiles<R> {
  R leave[kTile][kTile + 1];  // what each write leaves in G
  R dlog[kTile][kTile + 1];
  R tail[kTile];  // the rows of S G, summed
};

template <class R, class Shared = Tiles<R>> size_t shared_bytes(int64_t V, int chunk) {
  return sizeof(Shared) + 3 * chunk * padded(V) * sizeof(R);
}

template <class R>
__device__ void fill_vectors(Tiles<R>& t, const DeltaProductInputs& p, Span span, int64_t h,
                             int64_t first, int count) {
  const int i = threadIdx.x;
  if (i < kTile) {
    t.beta[i] = 0, t.gate[i] = 1, t.begins[i] = t.ends[i] = false, t.slope[i] = 0;
    if (i < count) {
      const uint32_t m = uint32_t(first) + i, N = uint32_t(p.N);
      const int64_t token = m / N, j = m - token * N;
      const int64_t at = span.b * p.T + span.t0 + token;
      t.token[i] = span.t0 + token, t.step[i] = j;
      t.begins[i] = j == 0, t.ends[i] = j == p.N - 1 && p.q.data;
      t.beta[i] = static_cast<const R*>(p.beta)[(at * p.N + j) * p.H + h];
      if (p.log_gate && !p.channels && j == 0)
        t.gate[i] = exp_of(static_cast<const R*>(p.log_gate)[at * p.H + h]);
    }
  }
  __syncthreads();
  if (i < kTile) {  // products, not differences of sums: exact behind a gate of zero too
    R a = 1;
    for (int m = i; m < kTile; ++m) t.decay[m][i] = m == i ? R(1) : a *= t.gate[m];
    t.after[i] = a;
    a = 1;
    for (int m = 0; m <= i; ++m) a *= t.gate[m];
    t.before[i] = a;
  }
}

// A tile of k and q, zero outside.
template <class Io, class R>
__device__ __forceinline__ void fill_keys(Tiles<R>& t, const DeltaProductInputs& p, int64_t b,
                                          int64_t h, int count, int64_t k0) {
  constexpr int kOwn = kTile * kTile / kThreads;
  R k[kOwn], q[kOwn];
#pragma unroll
  for (int n = 0; n < kOwn; ++n) {
    const int i = (threadIdx.x + n * kThreads) / kTile, c = threadIdx.x % kTile;
    const int row = min(i, count - 1);
    const int64_t from = min(k0 + c, p.K - 1);
    k[n] = load<R, Io>(p.k.data, row_at(p.k, b, t.token[row], t.step[row], h) + from);
    q[n] = p.q.data ? load<R, Io>(p.q.data, row_at(p.q, b, t.token[row], 0, h) + from) : R(0);
    if (i >= count || k0 + c >= p.K) k[n] = 0;
    if (i >= count || k0 + c >= p.K || !t.ends[i]) q[n] = 0;
  }
#pragma unroll
  for (int n = 0; n < kOwn; ++n) {
    const int i = (threadIdx.x + n * kThreads) / kTile, c = threadIdx.x % kTile;
    t.k[i][c] = k[n], t.q[i][c] = q[n];
  }
}

// dO, y and D of a chunk, [chunk, width] each.
template <class R> struct ChunkValues {
  int width;
  R *d_o, *y, *D;
  __device__ ChunkValues(R* memory, int chunk, int width_)
      : width(width_), d_o(memory), y(d_o + chunk * width), D(y + chunk * width) {}
};

// Fills all of it, and stores dbeta. Then X and E, with the decays of gates of heads.
template <class Io, class R>
__device__ __forceinline__ void fill_pairs(Tiles<R>& t, const DeltaProductBackward& p, Span span,
                                           const Slot& at, int64_t h, int chunk, const R* y_all,
                                           const ChunkValues<R>& values) {
  const auto& [width, d_o, y, D] = values;
  const int count = at.count, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t b = span.b;
  const R scale = R(p.scale);
  const int64_t error_at = (((b * p.H + h) * p.T + span.t0) * p.N + at.first) * p.V;
  const R* const error = static_cast<const R*>(p.error) + error_at;
#pragma unroll 4
  for (int i = warp; i < chunk; i += kWarps) {
    R dbeta = 0;
    for (int c = lane; c < width; c += 32) {
      const bool inside = i < count && c < p.V;
      const int row = min(i, count - 1), column = min(c, int(p.V) - 1);
      R e = error[row * p.V + column], w = y_all[error_at + row * p.V + column], o = 0;
      if (p.q.data) o = load<R, Io>(p.d_o.data, row_at(p.d_o, b, t.token[row], 0, h) + column);
      if (!inside) e = w = 0;
      dbeta += w * e;
      y[i * width + c] = w, D[i * width + c] = t.beta[i] * e;
      d_o[i * width + c] = inside && t.ends[i] ? o : R(0);
    }
    dbeta = sum_lanes<32>(dbeta);
    if (lane == 0 && i < count)
      static_cast<R*>(p.dbeta)[((b * p.T + t.token[i]) * p.N + t.step[i]) * p.H + h] = dbeta;
  }
  __syncthreads();
  for (int i = warp; i < kTile; i += kWarps) {
    R x = 0, e = 0;
    if (i < count && lane < count)
      for (int c = 0; c < width; c += 4) {
        R d[4], a[4], w[4];
        load_four(D + lane * width + c, d);
        load_four(d_o + i * width + c, a);
        load_four(y + i * width + c, w);
#pragma unroll
        for (int u = 0; u < 4; ++u) x += a[u] * d[u], e += w[u] * d[u];
      }
    t.X[i][lane] = i >= lane ? scale * t.decay[i][lane] * x : R(0);
    t.E[i][lane] = i > lane ? -t.decay[i][lane] * e : R(0);
  }
}

constexpr int kOwn = kTile / kWarps;  // rows warp kOwn .. of column `lane`

// The products of a chunk's values with the states at its two ends, for the key channels from k0
// on: of this warp's micro-steps, channel `lane`. Without decays.
template <class R> struct StateSums {
  R dq[kOwn] = {}, er[kOwn] = {}, src[kOwn] = {};  // S dO, S y, G D

  // Calls both(n, x) for terms x of S G, those of channel warp + n kWarps.
  template <class Both>
  __device__ __forceinline__ StateSums(Tiles<R>& t, const DeltaProductInputs& p, int chunk,
                                       const ChunkValues<R>& values, const R* S_all, const R* G_all,
                                       int64_t k0, Both&& both) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t v0 = 0; v0 < p.V; v0 += kTile) {
      __syncthreads();
      R sv[kOwn], gv[kOwn];
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        const int r = warp + n * kWarps;
        const bool inside = k0 + r < p.K && v0 + lane < p.V;
        const int64_t from = (k0 + r) * p.V + v0 + lane;
        sv[n] = inside ? S_all[from] : R(0), gv[n] = inside ? G_all[from] : R(0);
      }
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        t.S[warp + n * kWarps][lane] = sv[n], t.G[warp + n * kWarps][lane] = gv[n];
        both(n, sv[n] * gv[n]);
      }
      __syncthreads();
      for (int c = 0; c < kTile; c += 4) {
        R sv[4], gv[4], x[4];
        load_four(&t.S[lane][c], sv);
        load_four(&t.G[lane][c], gv);
#pragma unroll
        for (int n = 0; n < kOwn; ++n) {
          const int from = min(warp * kOwn + n, chunk - 1) * values.width + int(v0) + c;
          load_four(values.d_o + from, x);
#pragma unroll
          for (int u = 0; u < 4; ++u) dq[n] += x[u] * sv[u];
          load_four(values.y + from, x);
#pragma unroll
          for (int u = 0; u < 4; ++u) er[n] += x[u] * sv[u];
          load_four(values.D + from, x);
#pragma unroll
          for (int u = 0; u < 4; ++u) src[n] += x[u] * gv[u];
        }
      }
    }
  }
};

}  // namespace lrnn::kernels::cuda::exact
