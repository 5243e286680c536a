#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/exact.cuh"

// What remains of the gradients once every y = G^T k is known: sums over a chunk and over the
// states at its two ends, for all chunks at once. With the pseudo-values D_i = beta_i e_i, the
// decay A_ij from after j to after i, and S, G the state before and the gradient after the chunk:
//
//   X_ij = scale A_ij do_i.D_j (i >= j)          E_ij = - A_ij y_i.D_j (i > j)
//   dq_i = sum_j X_ij k_j + scale a_i S do_i     er_i = sum_j E_ij k_j - a_i S y_i
//   src_i = r_i G D_i + sum_j (X_ji q_j + beta_j E_ji k_j)
//   dk_i = src_i + beta_i er_i                   dbeta_i = y_i.e_i
//   dlog a_i = <G, S_end> + sum_{m >= i} (q_m.dq_m + beta_m k_m.er_m - k_m.src_m)
//
// where a_i is the decay from the start to i and r_i that from i to the end.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kTile = 32, kPad = kTile + 4;
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr size_t kSharedLimit = 200 * 1024;

int64_t padded(int64_t V) { return (V + kTile - 1) / kTile * kTile + 4; }

template <class R> struct Tiles {  // of which none depends on V
  alignas(16) R S[kTile][kPad], G[kTile][kPad];
  alignas(16) R k[kTile][kPad], q[kTile][kPad];
  R X[kTile][kTile + 1], E[kTile][kTile + 1], decay[kTile][kTile + 1];
  R beta[kTile], gate[kTile], before[kTile], after[kTile], slope[kTile], ends_dot[kWarps];
  bool begins[kTile], ends[kTile];
  int64_t token[kTile], step[kTile];
};

template <class R> size_t shared_bytes(int64_t V, int chunk) {
  return sizeof(Tiles<R>) + 3 * chunk * padded(V) * sizeof(R);
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
      if (p.log_gate && j == 0) t.gate[i] = exp_of(static_cast<const R*>(p.log_gate)[at * p.H + h]);
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

template <class Io, class R>
__global__ void __launch_bounds__(kThreads)
    sum_gradients(DeltaProductBackward p, int chunk, const R* y_all, const R* dstates, int width) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& t = *reinterpret_cast<Tiles<R>*>(memory);
  R* const d_o = reinterpret_cast<R*>(memory + sizeof(Tiles<R>));  // [chunk, width] each
  R* const y = d_o + chunk * width;
  R* const D = y + chunk * width;
  const int64_t slot = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const Slot at = slot_of(p, slot, chunk);
  if (at.count == 0) return;
  const Span span = span_of(p, at.s);
  const int count = at.count, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t matrix = p.K * p.V, b = span.b;
  const R scale = R(p.scale);
  fill_vectors(t, p, span, h, at.first, count);
  __syncthreads();

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

  const R* const S_all = static_cast<const R*>(p.states) + (slot * p.H + h) * matrix;
  const R* const G_all = dstates + (slot * p.H + h) * matrix;
  constexpr int kOwn = kTile / kWarps;  // rows warp kOwn .. of column `lane`
  R slope[kOwn] = {}, both_ends = 0, at_end = 0;
  for (int64_t k0 = 0; k0 < p.K; k0 += kTile) {
    __syncthreads();
    fill_keys<Io>(t, p, b, h, count, k0);
    R dq[kOwn] = {}, er[kOwn] = {}, src[kOwn] = {};
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
        both_ends += sv[n] * gv[n];
      }
      __syncthreads();
      for (int c = 0; c < kTile; c += 4) {
        R sv[4], gv[4], x[4];
        load_four(&t.S[lane][c], sv);
        load_four(&t.G[lane][c], gv);
#pragma unroll
        for (int n = 0; n < kOwn; ++n) {
          const int from = min(warp * kOwn + n, chunk - 1) * width + int(v0) + c;
          load_four(d_o + from, x);
#pragma unroll
          for (int u = 0; u < 4; ++u) dq[n] += x[u] * sv[u];
          load_four(y + from, x);
#pragma unroll
          for (int u = 0; u < 4; ++u) er[n] += x[u] * sv[u];
          load_four(D + from, x);
#pragma unroll
          for (int u = 0; u < 4; ++u) src[n] += x[u] * gv[u];
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      const int i = warp * kOwn + n;
      if (i >= count) continue;
      dq[n] *= scale * t.before[i], er[n] *= -t.before[i], src[n] *= t.after[i];
      const R own_k = t.k[i][lane];
      at_end += own_k * src[n];
      for (int j = 0; j < count; ++j) {  // X and E are zero above the diagonal
        dq[n] += t.X[i][j] * t.k[j][lane];
        er[n] += t.E[i][j] * t.k[j][lane];
        src[n] += t.X[j][i] * t.q[j][lane] + t.beta[j] * t.E[j][i] * t.k[j][lane];
      }
      slope[n] += t.q[i][lane] * dq[n] + t.beta[i] * own_k * er[n] - own_k * src[n];
      if (k0 + lane >= p.K) continue;
      if (t.ends[i])
        store_as<R>(p.type, p.dq.data, row_at(p.dq, b, t.token[i], 0, h) + k0 + lane, dq[n]);
      store_as<R>(p.type, p.dk.data, row_at(p.dk, b, t.token[i], t.step[i], h) + k0 + lane,
                  src[n] + t.beta[i] * er[n]);
    }
  }
  if (!p.dlog_gate) return;
#pragma unroll
  for (int n = 0; n < kOwn; ++n) {
    slope[n] = sum_lanes<32>(slope[n]);
    if (lane == 0) t.slope[warp * kOwn + n] = slope[n];
  }
  at_end = sum_lanes<32>(at_end + t.before[kTile - 1] * both_ends);
  if (lane == 0) t.ends_dot[warp] = at_end;
  __syncthreads();
  if (threadIdx.x == 0) {
    R sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += t.ends_dot[w];
    for (int i = count - 1; i >= 0; --i) {
      sum += t.slope[i];
      if (t.begins[i]) static_cast<R*>(p.dlog_gate)[(b * p.T + t.token[i]) * p.H + h] = sum;
    }
  }
}

template <class Io, class R>
void launch_gradients(const DeltaProductBackward& p, int chunk, const void* y, const void* dstates,
                      void* stream) {
  const int64_t blocks = chunk_slots(p, chunk) * p.H;
  if (blocks == 0) return;
  const size_t bytes = shared_bytes<R>(p.V, chunk);
  allow_shared(sum_gradients<Io, R>, bytes);
  sum_gradients<Io, R><<<unsigned(blocks), kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
      p, chunk, static_cast<const R*>(y), static_cast<const R*>(dstates), int(padded(p.V)));
  check_launch("delta_product");
}

}  // namespace

int exact_chunk(int64_t V, Type type) {
  for (int chunk = kTile; chunk > 0; chunk /= 2) {
    const size_t bytes =
        type == Type::kFloat64 ? shared_bytes<double>(V, chunk) : shared_bytes<float>(V, chunk);
    if (bytes <= kSharedLimit) return chunk;
  }
  return 0;
}

int64_t exact_slots(const DeltaProductInputs& p, int chunk) { return chunk_slots(p, chunk); }

void exact_scan_backward(const DeltaProductBackward& p, int chunk, void* y, void* dstates,
                         void* stream);

void exact_backward(const DeltaProductBackward& p, int chunk, void* y, void* dstates,
                    void* stream) {
  if (p.S * p.H == 0) return;
  exact_scan_backward(p, chunk, y, dstates, stream);
  if (p.type == Type::kFloat64)
    launch_gradients<double, double>(p, chunk, y, dstates, stream);
  else if (p.type == Type::kFloat32)
    launch_gradients<float, float>(p, chunk, y, dstates, stream);
  else
    launch_gradients<Bf16, float>(p, chunk, y, dstates, stream);
}

}  // namespace lrnn::kernels::cuda
