#include "kernels/cuda/delta_product/decays.cuh"

// What remains of the gradients once every dV = beta Y and the state S before and its gradient G
// after each chunk are known, for all chunks at once. A is the decay in between, e the errors:
//
//   X_rj = scale A_rj beta_j dO_r.e_j         E_ij = -A_ij beta_j dV_i.e_j      (j < i)
//   dQ = X K + scale diag(a) dO S^T           er = E K - diag(a) dV S^T
//   src = diag(r beta) e G^T + X^T Q + E^T K  dK = er + src
//   dbeta_i = dV_i.e_i / beta_i
//   dlog a_i = <G, S_end> + sum_{m >= i} (q_m.dq_m + k_m.er_m - k_m.src_m)
//
// A block of 4 kGroups warps takes one chunk of one head: four groups of 16 rows times kGroups
// groups of columns. It walks the value channels in tiles, the next one on its way. `kSplit`
// multiplies what rounding to bfloat16 left of all these too.
namespace lrnn::kernels::cuda {
namespace {

constexpr int most_columns(bool split) { return split ? 32 : 64; }  // value channels in a tile

// Bytes in shared memory. In split mode the lo half of a matrix follows it.
template <int KC, bool kSplit> struct Layout {
  int k = 0, q, X, X_bytes, E, vectors, slopes, decays, stages, d_o = 0, dv, e, S, G, stage;
  int values, state;  // bytes of a tile of values and of a state
  __host__ __device__ Layout(int rows, int columns, bool gate) {
    constexpr int kParts = kSplit ? 2 : 1;
    q = k + kChunk * row_bytes(KC);
    X = q + rows * row_bytes(KC);
    X_bytes = rows * row_bytes(kChunk);
    E = X + kParts * X_bytes;
    vectors = E + kParts * kChunk * row_bytes(kChunk);
    slopes = vectors + kVectorCount * kChunk * int(sizeof(float));
    decays = slopes + (gate ? 9 * kChunk * int(sizeof(float)) : 0);
    stages = decays + (gate ? int(sizeof(Decays)) : 0);
    values = kChunk * row_bytes(columns), state = columns * row_bytes(KC);
    dv = d_o + rows * row_bytes(columns);
    e = dv + kParts * values;
    S = e + kParts * values;
    G = S + kParts * state;
    stage = G + kParts * state;
  }
  __host__ __device__ int bytes(int tiles) const { return stages + (tiles > 1 ? 2 : 1) * stage; }
};

// The sum over a row of C tiles times the same piece of a row in shared memory, on all four lanes.
template <int kTiles>
__device__ __forceinline__ float row_dot(const float (&acc)[kTiles][4], int half,
                                         const unsigned char* row) {
  float sum = 0;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
    const uint32_t x = *reinterpret_cast<const uint32_t*>(row + t * 16);
    sum += acc[t][2 * half] * low_of(x) + acc[t][2 * half + 1] * high_of(x);
  }
  return sum_lanes<4>(sum);
}

template <int kTiles>
__device__ __forceinline__ void scale_rows(float (&acc)[kTiles][4], float upper, float lower) {
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
    acc[t][0] *= upper, acc[t][1] *= upper, acc[t][2] *= lower, acc[t][3] *= lower;
}

template <int KC, int kGroups, bool kSplit>
__global__ void __launch_bounds__(kGroups * 128, 1)
    sum_gradients(DeltaProductBackward p, ChunkWork w, const uint16_t* dstates, int columns) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kOwn = KC / kGroups, kTiles = kOwn / 8;                   // key channels of a warp
  constexpr int kAcross = kChunk / (kGroups / 2), kXTiles = kAcross / 8;  // its columns of X or E
  const Layout<KC, kSplit> layout(w.rows, columns, p.log_gate);
  const uint32_t base = shared_address(memory);
  const int64_t slot = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const Slot at = slot_of(p, slot, kChunk);
  if (at.count == 0) return;
  const Span span = span_of(p, at.s);
  const Queries queries(p, at.first, at.count);
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  const int row0 = threadIdx.x / 32 % 4 * 16, group = threadIdx.x / 128, own = group * kOwn;
  const bool is_E = group >= kGroups / 2, has_row = row0 < w.rows && p.q.data;
  const int across = group % (kGroups / 2) * kAcross;
  const float* const vectors = reinterpret_cast<const float*>(memory + layout.vectors);
  float* const slopes = reinterpret_cast<float*>(memory + layout.slopes);
  auto& decays = *reinterpret_cast<Decays*>(memory + layout.decays);
  const int64_t head = slot * p.H + h, b = span.b;
  const int tiles = int((p.V + columns - 1) / columns);
  const int v_step = row_bytes(columns), c_step = row_bytes(kChunk), k_step = row_bytes(KC);

  const uint16_t* const k_rows =
      static_cast<const uint16_t*>(p.k.data) + row_at(p.k, b, span.t0, 0, h) + at.first * p.k.step;
  const uint16_t* const dv_rows = static_cast<const uint16_t*>(p.dv.data) +
                                  row_at(p.dv, b, span.t0, 0, h) + at.first * p.dv.step;
  const int64_t error_at = (((b * p.H + h) * p.T + span.t0) * p.N + at.first) * p.V;
  const auto fetch = [&](int tile, int64_t k0) {
    const uint32_t to = base + layout.stages + (tile & 1) * layout.stage;
    const int v0 = tile * columns, width = int(p.V) - v0, keys = int(p.K - k0);
    if (p.q.data)
      fetch_rows(to + layout.d_o,
                 static_cast<const uint16_t*>(p.d_o.data) +
                     row_at(p.d_o, b, span.t0 + queries.token, 0, h) + v0,
                 p.d_o.token, w.rows, queries.rows, columns, width);
    fetch_rows(to + layout.dv, dv_rows + v0, p.dv.step, kChunk, at.count, columns, width);
    const auto fetch_errors = [&](int place, const uint16_t* from) {
      fetch_rows(to + place, from + error_at + v0, p.V, kChunk, at.count, columns, width);
    };
    const auto fetch_state = [&](int place, const uint16_t* from) {
      fetch_rows<KC>(to + place, from + (head * p.V + v0) * p.K + k0, p.K, columns, width, keys);
    };
    fetch_errors(layout.e, static_cast<const uint16_t*>(p.error));
    fetch_state(layout.S, static_cast<const uint16_t*>(p.states));
    fetch_state(layout.G, dstates);
    if constexpr (kSplit) {
      fetch_errors(layout.dv + layout.values, w.dv_lo);
      fetch_errors(layout.e + layout.values, w.error_lo);
      fetch_state(layout.S + layout.state, w.states_lo);
      fetch_state(layout.G + layout.state, w.dstates_lo);
    }
  };

  fetch_vectors(base + layout.vectors, w.vectors + head * kVectorCount * kChunk);
  float slope[2] = {}, q_slope[2] = {}, at_end = 0;
  for (int64_t k0 = 0; k0 < p.K; k0 += KC) {
    fetch_rows<KC>(base + layout.k, k_rows + k0, p.k.step, kChunk, at.count, int(p.K - k0));
    if (p.q.data)
      fetch_rows<KC>(base + layout.q,
                     static_cast<const uint16_t*>(p.q.data) +
                         row_at(p.q, b, span.t0 + queries.token, 0, h) + k0,
                     p.q.token, w.rows, queries.rows, int(p.K - k0));
    fetch(0, k0);
    copy_commit();
    float x[kXTiles][4] = {}, dq[kTiles][4] = {}, er[kTiles][4] = {}, src[kTiles][4] = {};
    for (int tile = 0; tile < tiles; ++tile) {
      if (tile + 1 < tiles) fetch(tile + 1, k0);
      copy_commit();
      copy_wait<1>();
      __syncthreads();
      if (p.log_gate && k0 == 0 && tile == 0) decays.fill(vectors + kGate * kChunk);
      const uint32_t stage = base + layout.stages + (tile & 1) * layout.stage;
      const uint32_t rows_at = lane_transposed(v_step) + row0 * v_step;
      for (int v = 0; v < columns; v += 16) {
        uint32_t d_o[4] = {}, dv[4], e[4], dv_lo[4], e_lo[4], t[4];
        if (has_row) ldmatrix(d_o, stage + layout.d_o + rows_at + v * 2);
        ldmatrix(dv, stage + layout.dv + rows_at + v * 2);
        ldmatrix(e, stage + layout.e + rows_at + v * 2);
        if constexpr (kSplit) {
          ldmatrix(dv_lo, stage + layout.dv + layout.values + rows_at + v * 2);
          ldmatrix(e_lo, stage + layout.e + layout.values + rows_at + v * 2);
        }
        uint32_t left[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) left[u] = is_E ? dv[u] : d_o[u];
        if (k0 == 0 && (is_E || has_row))
#pragma unroll
          for (int n = 0; n < kXTiles / 2; ++n) {
            const uint32_t from =
                stage + layout.e + lane_direct(v_step) + (across + n * 16) * v_step + v * 2;
            ldmatrix(t, from);
            mma(x[2 * n], left, t[0], t[1]);
            mma(x[2 * n + 1], left, t[2], t[3]);
            if constexpr (kSplit) {
              if (is_E) mma(x[2 * n], dv_lo, t[0], t[1]), mma(x[2 * n + 1], dv_lo, t[2], t[3]);
              ldmatrix(t, from + layout.values);
              mma(x[2 * n], left, t[0], t[1]);
              mma(x[2 * n + 1], left, t[2], t[3]);
            }
          }
        const uint32_t state_at = lane_transposed(k_step) + v * k_step + own * 2;
#pragma unroll
        for (int n = 0; n < kTiles / 2; ++n) {
          ldmatrix_transposed(t, stage + layout.S + state_at + n * 32);
          if (has_row) mma(dq[2 * n], d_o, t[0], t[1]), mma(dq[2 * n + 1], d_o, t[2], t[3]);
          mma(er[2 * n], dv, t[0], t[1]), mma(er[2 * n + 1], dv, t[2], t[3]);
          if constexpr (kSplit) {
            mma(er[2 * n], dv_lo, t[0], t[1]), mma(er[2 * n + 1], dv_lo, t[2], t[3]);
            ldmatrix_transposed(t, stage + layout.S + layout.state + state_at + n * 32);
            if (has_row) mma(dq[2 * n], d_o, t[0], t[1]), mma(dq[2 * n + 1], d_o, t[2], t[3]);
            mma(er[2 * n], dv, t[0], t[1]), mma(er[2 * n + 1], dv, t[2], t[3]);
          }
          ldmatrix_transposed(t, stage + layout.G + state_at + n * 32);
          mma(src[2 * n], e, t[0], t[1]), mma(src[2 * n + 1], e, t[2], t[3]);
          if constexpr (kSplit) {
            mma(src[2 * n], e_lo, t[0], t[1]), mma(src[2 * n + 1], e_lo, t[2], t[3]);
            ldmatrix_transposed(t, stage + layout.G + layout.state + state_at + n * 32);
            mma(src[2 * n], e, t[0], t[1]), mma(src[2 * n + 1], e, t[2], t[3]);
          }
        }
      }
      if (p.dlog_gate) {  // <G, S>, each thread its share
        const unsigned char* here = memory + layout.stages + (tile & 1) * layout.stage;
        float sum = 0;
        for (int i = threadIdx.x; i < columns * KC / 2; i += kGroups * 128) {
          const int at_row = i / (KC / 2) * k_step + i % (KC / 2) * 4;
          const auto add = [&](int S_at, int G_at) {
            const uint32_t a = *reinterpret_cast<const uint32_t*>(here + S_at + at_row),
                           z = *reinterpret_cast<const uint32_t*>(here + G_at + at_row);
            sum += low_of(a) * low_of(z) + high_of(a) * high_of(z);
          };
          add(layout.S, layout.G);
          if constexpr (kSplit)
            add(layout.S + layout.state, layout.G), add(layout.S, layout.G + layout.state);
        }
        at_end += vectors[kBefore * kChunk + kChunk - 1] * sum;
      }
      __syncthreads();
    }

    const int i0 = row0 + g, i1 = i0 + 8;
    if (k0 == 0) {
#pragma unroll
      for (int t = 0; t < kXTiles; ++t)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = half ? i1 : i0, j = across + t * 8 + 2 * c;
          float y[2];
#pragma unroll
          for (int u = 0; u < 2; ++u) {
            const float value = x[t][2 * half + u], beta = vectors[kBeta * kChunk + j + u];
            if (is_E) {
              y[u] = j + u < i ? -beta * value * (p.log_gate ? decays.at(i, j + u) : 1.f) : 0.f;
              if (j + u == i && i < at.count) {
                const int64_t m = at.first + i;
                static_cast<float*>(p.dbeta)[((b * p.T + span.t0) * p.N + m) * p.H + h] =
                    value / beta;
              }
            } else {
              const int64_t last = i < queries.rows ? queries.at(i) : -1;
              y[u] = j + u <= last ? float(p.scale) * beta * value *
                                         (p.log_gate ? decays.at(int(last), j + u) : 1.f)
                                   : 0.f;
            }
          }
          unsigned char* const to = memory + (is_E ? layout.E : layout.X) + i * c_step + j * 2;
          if (!is_E && !has_row) continue;
          const uint32_t packed = pack(y[0], y[1]);
          *reinterpret_cast<uint32_t*>(to) = packed;
          if constexpr (kSplit)
            *reinterpret_cast<uint32_t*>(to + (is_E ? kChunk * c_step : layout.X_bytes)) =
                pack_lo(y[0], y[1], packed);
        }
    }
    __syncthreads();

    const float read0 = has_row ? vectors[kRead * kChunk + i0] : 0.f,
                read1 = has_row ? vectors[kRead * kChunk + i1] : 0.f;
    scale_rows(dq, read0, read1);
    scale_rows(er, -vectors[kBefore * kChunk + i0], -vectors[kBefore * kChunk + i1]);
    scale_rows(src, vectors[kAfter * kChunk + i0] * vectors[kBeta * kChunk + i0],
               vectors[kAfter * kChunk + i1] * vectors[kBeta * kChunk + i1]);
    const unsigned char* const k_own = memory + layout.k + (own + 2 * c) * 2;
    if (p.dlog_gate) {
      const float sum = row_dot(src, 0, k_own + i0 * k_step) + row_dot(src, 1, k_own + i1 * k_step);
      if (c == 0) at_end += sum;
    }
    const uint32_t tile_at = lane_transposed(k_step) + own * 2;
#pragma unroll
    for (int part = 0; part < (kSplit ? 2 : 1); ++part) {
      const uint32_t X_at = base + layout.X + part * layout.X_bytes,
                     E_at = base + layout.E + part * kChunk * c_step;
#pragma unroll
      for (int j = 0; j < kChunk; j += 16) {
        uint32_t X[4] = {}, E[4], Et[4], t[4];
        if (has_row) ldmatrix(X, X_at + lane_transposed(c_step) + row0 * c_step + j * 2);
        ldmatrix(E, E_at + lane_transposed(c_step) + row0 * c_step + j * 2);
        ldmatrix_transposed(Et, E_at + lane_direct(c_step) + j * c_step + row0 * 2);
#pragma unroll
        for (int n = 0; n < kTiles / 2; ++n) {
          ldmatrix_transposed(t, base + layout.k + tile_at + j * k_step + n * 32);
          if (has_row) mma(dq[2 * n], X, t[0], t[1]), mma(dq[2 * n + 1], X, t[2], t[3]);
          if (j <= row0) mma(er[2 * n], E, t[0], t[1]), mma(er[2 * n + 1], E, t[2], t[3]);
          if (j >= row0) mma(src[2 * n], Et, t[0], t[1]), mma(src[2 * n + 1], Et, t[2], t[3]);
        }
      }
      for (int r = 0; r < queries.rows; r += 16) {
        uint32_t Xt[4], t[4];
        ldmatrix_transposed(Xt, X_at + lane_direct(c_step) + r * c_step + row0 * 2);
#pragma unroll
        for (int n = 0; n < kTiles / 2; ++n) {
          ldmatrix_transposed(t, base + layout.q + tile_at + r * k_step + n * 32);
          mma(src[2 * n], Xt, t[0], t[1]), mma(src[2 * n + 1], Xt, t[2], t[3]);
        }
      }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = half ? i1 : i0;
      if (p.dlog_gate) {
        slope[half] +=
            row_dot(er, half, k_own + i * k_step) - row_dot(src, half, k_own + i * k_step);
        if (has_row)
          q_slope[half] += row_dot(dq, half, memory + layout.q + (own + 2 * c) * 2 + i * k_step);
      }
      const int64_t k_at = k0 + own + 2 * c;
      if (i < at.count) {
        uint16_t* const dk = static_cast<uint16_t*>(p.dk.data) + row_at(p.dk, b, span.t0, 0, h) +
                             (at.first + i) * p.dk.step + k_at;
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          if (k_at + t * 8 < p.K)
            *reinterpret_cast<uint32_t*>(dk + t * 8) = pack(
                er[t][2 * half] + src[t][2 * half], er[t][2 * half + 1] + src[t][2 * half + 1]);
      }
      if (i < queries.rows) {
        uint16_t* const to = static_cast<uint16_t*>(p.dq.data) +
                             row_at(p.dq, b, span.t0 + queries.token + i, 0, h) + k_at;
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          if (k_at + t * 8 < p.K)
            *reinterpret_cast<uint32_t*>(to + t * 8) = pack(dq[t][2 * half], dq[t][2 * half + 1]);
      }
    }
    __syncthreads();
  }
  if (!p.dlog_gate) return;

  // slopes: [kGroups][64] of micro-steps, the same of queries, then one end sum per warp.
  if (c == 0) {
    slopes[group * kChunk + row0 + g] = slope[0], slopes[group * kChunk + row0 + g + 8] = slope[1];
    slopes[(4 + group) * kChunk + row0 + g] = q_slope[0];
    slopes[(4 + group) * kChunk + row0 + g + 8] = q_slope[1];
  }
  at_end = sum_lanes<32>(at_end);
  if (lane == 0) slopes[8 * kChunk + threadIdx.x / 32] = at_end;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  float after = 0;
  for (int i = 0; i < kGroups * 4; ++i) after += slopes[8 * kChunk + i];
  sum_up_gates(p, span, at, h, after, [&](int i) {
    const int r = queries.row(i);
    float sum = 0;
    for (int n = 0; n < kGroups; ++n) {
      sum += slopes[n * kChunk + i];
      if (r >= 0) sum += slopes[(4 + n) * kChunk + r];
    }
    return sum;
  });
}

template <int KC, int kGroups, bool kSplit>
void launch_gradients(const DeltaProductBackward& p, const ChunkWork& w, const uint16_t* dstates,
                      cudaStream_t stream) {
  constexpr int kMost = most_columns(kSplit);
  const int columns = int(p.V < kMost ? p.V : kMost);
  const int tiles = int((p.V + columns - 1) / columns);
  const int bytes = Layout<KC, kSplit>(w.rows, columns, p.log_gate).bytes(tiles);
  auto* kernel = sum_gradients<KC, kGroups, kSplit>;
  allow_shared(kernel, bytes);
  kernel<<<unsigned(chunk_slots(p, kChunk) * p.H), kGroups * 128, bytes, stream>>>(p, w, dstates,
                                                                                   columns);
  check_launch("delta_product");
}
template <int KC, int kGroups>
void launch_gradients(const DeltaProductBackward& p, const ChunkWork& w, const uint16_t* dstates,
                      cudaStream_t stream) {
  w.split ? launch_gradients<KC, kGroups, true>(p, w, dstates, stream)
          : launch_gradients<KC, kGroups, false>(p, w, dstates, stream);
}

}  // namespace

void chunk_gradients(const DeltaProductBackward& p, const ChunkWork& w,
                     const StateGradients& dstates, void* stream) {
  if (chunk_slots(p, kChunk) * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_gradients(p, w, dstates, stream);
#endif
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 32) return launch_gradients<32, 2>(p, w, dstates.chunks, on);
  if (p.K <= 64) return launch_gradients<64, 4>(p, w, dstates.chunks, on);
  return launch_gradients<128, 4>(p, w, dstates.chunks, on);
}

}  // namespace lrnn::kernels::cuda
