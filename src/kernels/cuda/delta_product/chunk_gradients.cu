#include "kernels/cuda/delta_product/chunk_gradients.cuh"

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

template <int KC, int kGroups, bool kSplit> struct Gradients : GradientChunk<KC, kGroups, kSplit> {
  using Chunk = GradientChunk<KC, kGroups, kSplit>;
  using Chunk::kParts, Chunk::kTiles, Chunk::kXTiles, Chunk::p, Chunk::memory, Chunk::columns,
      Chunk::size, Chunk::layout, Chunk::at, Chunk::span, Chunk::queries, Chunk::h, Chunk::g,
      Chunk::c, Chunk::row0, Chunk::group, Chunk::own, Chunk::across, Chunk::is_E, Chunk::has_row,
      Chunk::vector, Chunk::decays, Chunk::keys, Chunk::square, Chunk::values;
  using Sums = float[kTiles][4];
  float slope[2] = {}, q_slope[2] = {}, at_end = 0;  // of the gate's gradient

  // X or E += dO e^T or dV e^T over 16 value channels.
  __device__ __forceinline__ void add_pairs(float (&x)[kXTiles][4], const Fragment<1>& d_o,
                                            const Fragment<kParts>& dv, int stage, int v) const {
    Fragment<1> left;
#pragma unroll
    for (int u = 0; u < 4; ++u) left.part[0][u] = is_E ? dv.part[0][u] : d_o.part[0][u];
#pragma unroll
    for (int n = 0; n < kXTiles / 2; ++n) {
      float(&l)[4] = x[2 * n], (&r)[4] = x[2 * n + 1];
      const auto e = values(stage + layout.e).b_rows(v, across + n * 16);
      multiply(l, r, left, e);
      if constexpr (kSplit) {
        if (is_E) multiply(l, r, dv.only(1), e);
        multiply(l, r, left, values(stage + layout.e + layout.values).b_rows(v, across + n * 16));
      }
    }
  }
  // A fragment of rows of values and of their lo.
  __device__ __forceinline__ Fragment<kParts> own_values(int at, int v) const {
    const auto hi = values(at).a_rows(row0, v);
    if constexpr (kSplit)
      return join_parts(hi, values(at + layout.values).a_rows(row0, v));
    else
      return hi;
  }
  // dQ += dO S^T and er += dV S^T over 16 value channels.
  __device__ __forceinline__ void add_states(Sums& dq, Sums& er, const Fragment<1>& d_o,
                                             const Fragment<kParts>& dv, int stage, int v) const {
#pragma unroll
    for (int n = 0; n < kTiles; n += 2) {
      const auto S = keys(stage + layout.S).b_columns(v, own + n * 8);
      if (has_row) multiply(dq[n], dq[n + 1], d_o, S);
      multiply(er[n], er[n + 1], dv, S);
      if constexpr (kSplit) {
        const auto S_lo = keys(stage + layout.S + layout.state).b_columns(v, own + n * 8);
        if (has_row) multiply(dq[n], dq[n + 1], d_o, S_lo);
        multiply(er[n], er[n + 1], dv.only(0), S_lo);
      }
    }
  }
  // src += e G^T over 16 value channels.
  __device__ __forceinline__ void add_sources(Sums& src, int stage, int v) const {
    const auto e = own_values(stage + layout.e, v);
#pragma unroll
    for (int n = 0; n < kTiles; n += 2) {
      multiply(src[n], src[n + 1], e, keys(stage + layout.G).b_columns(v, own + n * 8));
      if constexpr (kSplit)
        multiply(src[n], src[n + 1], e.only(0),
                 keys(stage + layout.G + layout.state).b_columns(v, own + n * 8));
    }
  }
  // <G, S>, each thread its share.
  __device__ __forceinline__ float both_ends(int stage) const {
    const unsigned char* here = memory + stage;
    float sum = 0;
    for (int i = threadIdx.x; i < columns * KC / 2; i += kGroups * 128) {
      const int at_row = i / (KC / 2) * row_bytes(KC) + i % (KC / 2) * 4;
      const auto add = [&](int S_at, int G_at) {
        const uint32_t a = *reinterpret_cast<const uint32_t*>(here + S_at + at_row),
                       z = *reinterpret_cast<const uint32_t*>(here + G_at + at_row);
        sum += low_of(a) * low_of(z) + high_of(a) * high_of(z);
      };
      add(layout.S, layout.G);
      if constexpr (kSplit)
        add(layout.S + layout.state, layout.G), add(layout.S, layout.G + layout.state);
    }
    return vector(kBefore)[kChunk - 1] * sum;
  }

  // X and E with their factors to shared memory, and dbeta, the diagonal of E.
  __device__ __forceinline__ void share_pairs(const float (&x)[kXTiles][4]) const {
    const float* const betas = vector(kBeta);
#pragma unroll
    for (int t = 0; t < kXTiles; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = row0 + g + half * 8, j = across + t * 8 + 2 * c;
        float y[2];
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const float value = x[t][2 * half + u], beta = betas[j + u];
          if (is_E) {
            y[u] = j + u < i ? -beta * value * (p.log_gate ? decays().at(i, j + u) : 1.f) : 0.f;
            if (j + u == i && i < at.count) {
              const int64_t m = at.first + i;
              static_cast<float*>(p.dbeta)[((span.b * p.T + span.t0) * p.N + m) * p.H + h] =
                  value / beta;
            }
          } else {
            const int64_t last = i < queries.rows ? queries.at(i) : -1;
            y[u] = j + u <= last ? float(p.scale) * beta * value *
                                       (p.log_gate ? decays().at(int(last), j + u) : 1.f)
                                 : 0.f;
          }
        }
        unsigned char* const to =
            memory + (is_E ? layout.E : layout.X) + i * row_bytes(kChunk) + j * 2;
        if (!is_E && !has_row) continue;
        uint32_t part[kParts];
        split(y[0], y[1], part);
        *reinterpret_cast<uint32_t*>(to) = part[0];
        if constexpr (kSplit)
          *reinterpret_cast<uint32_t*>(to + (is_E ? kChunk * row_bytes(kChunk) : layout.X_bytes)) =
              part[1];
      }
  }
  // dQ += X K, er += E K and src += E^T K + X^T Q.
  __device__ __forceinline__ void add_pairs_by_keys(Sums& dq, Sums& er, Sums& src) const {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      const Matrix X = square(layout.X + part * layout.X_bytes),
                   E = square(layout.E + part * kChunk * row_bytes(kChunk));
#pragma unroll
      for (int j = 0; j < kChunk; j += 16) {
        Fragment<1> x = {};
        if (has_row) x = X.a_rows(row0, j);
        const auto e = E.a_rows(row0, j), e_across = E.a_columns(row0, j);
#pragma unroll
        for (int n = 0; n < kTiles; n += 2) {
          const auto k = keys(layout.k).b_columns(j, own + n * 8);
          if (has_row) multiply(dq[n], dq[n + 1], x, k);
          if (j <= row0) multiply(er[n], er[n + 1], e, k);
          if (j >= row0) multiply(src[n], src[n + 1], e_across, k);
        }
      }
      for (int r = 0; r < queries.rows; r += 16) {
        const auto x_across = X.a_columns(row0, r);
#pragma unroll
        for (int n = 0; n < kTiles; n += 2)
          multiply(src[n], src[n + 1], x_across, keys(layout.q).b_columns(r, own + n * 8));
      }
    }
  }

  __device__ __forceinline__ float dot(const Sums& x, int half, int rows) const {
    const unsigned char* const row =
        memory + rows + (own + 2 * c) * 2 + (row0 + g + half * 8) * row_bytes(KC);
    return row_dot(x, half,
                   [&](int t) { return *reinterpret_cast<const uint32_t*>(row + t * 16); });
  }
  __device__ __forceinline__ void store(const Sums& dq, const Sums& er, const Sums& src,
                                        int64_t k0) const {
    const int64_t k_at = k0 + own + 2 * c;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = row0 + g + half * 8;
      if (i < at.count) {
        uint16_t* const dk =
            static_cast<uint16_t*>(p.dk.data) + this->step_row(p.dk) + i * p.dk.step + k_at;
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          if (k_at + t * 8 < p.K)
            *reinterpret_cast<uint32_t*>(dk + t * 8) = pack(
                er[t][2 * half] + src[t][2 * half], er[t][2 * half + 1] + src[t][2 * half + 1]);
      }
      if (i < queries.rows) {
        uint16_t* const to =
            static_cast<uint16_t*>(p.dq.data) + this->query_row(p.dq) + i * p.dq.token + k_at;
#pragma unroll
        for (int t = 0; t < kTiles; ++t)
          if (k_at + t * 8 < p.K)
            *reinterpret_cast<uint32_t*>(to + t * 8) = pack(dq[t][2 * half], dq[t][2 * half + 1]);
      }
    }
  }

  // All of it for key channels k0 .. k0+KC-1.
  __device__ __forceinline__ void walk(int64_t k0) {
    this->fetch_keys(k0);
    this->fetch_values(0, k0);
    copy_commit();
    float x[kXTiles][4] = {};
    Sums dq = {}, er = {}, src = {};
    for (int tile = 0; tile < this->tiles; ++tile) {
      if (size.next_stage != 0 && tile + 1 < this->tiles) this->fetch_values(tile + 1, k0);
      copy_commit();
      copy_wait<1>();
      __syncthreads();
      if (p.log_gate && k0 == 0 && tile == 0) decays().fill(vector(kGate));
      const int here = this->stage(tile);
      for (int v = 0; v < columns; v += 16) {
        Fragment<1> d_o = {};
        if (has_row) d_o = values(here + layout.d_o).a_rows(row0, v);
        const auto dv = own_values(here + layout.dv, v);
        if (k0 == 0 && (is_E || has_row)) add_pairs(x, d_o, dv, here, v);
        add_states(dq, er, d_o, dv, here, v);
        add_sources(src, here, v);
      }
      if (p.dlog_gate) at_end += both_ends(here);
      __syncthreads();
      if (size.next_stage == 0 && tile + 1 < this->tiles)
        this->fetch_values(tile + 1, k0), copy_commit();
    }
    if (k0 == 0) share_pairs(x);
    __syncthreads();

    const int i0 = row0 + g, i1 = i0 + 8;
    scale_rows(dq, has_row ? vector(kRead)[i0] : 0.f, has_row ? vector(kRead)[i1] : 0.f);
    scale_rows(er, -vector(kBefore)[i0], -vector(kBefore)[i1]);
    scale_rows(src, vector(kAfter)[i0] * vector(kBeta)[i0], vector(kAfter)[i1] * vector(kBeta)[i1]);
    if (p.dlog_gate) {
      const float sum = dot(src, 0, layout.k) + dot(src, 1, layout.k);
      if (c == 0) at_end += sum;
    }
    add_pairs_by_keys(dq, er, src);
    if (p.dlog_gate)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        slope[half] += dot(er, half, layout.k) - dot(src, half, layout.k);
        if (has_row) q_slope[half] += dot(dq, half, layout.q);
      }
    store(dq, er, src, k0);
    __syncthreads();
  }

  // The gate's gradient. slopes: [kGroups][64] of micro-steps, the same of queries, then one end
  // sum per warp.
  __device__ __forceinline__ void sum_gates() {
    float* const slopes = reinterpret_cast<float*>(memory + layout.slopes);
    if (c == 0)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        slopes[group * kChunk + row0 + g + half * 8] = slope[half];
        slopes[(4 + group) * kChunk + row0 + g + half * 8] = q_slope[half];
      }
    at_end = sum_lanes<32>(at_end);
    if (threadIdx.x % 32 == 0) slopes[8 * kChunk + threadIdx.x / 32] = at_end;
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
};

// dQ = X K + scale diag(a) dO S^T,  dK = E K - diag(a) dV S^T + diag(r beta) e G^T + X^T Q + E^T K
template <int KC, int kGroups, bool kSplit>
__global__ void __launch_bounds__(kGroups * 128, 1)
    sum_gradients(DeltaProductBackward p, ChunkWork w, const uint16_t* dstates, GradientSize size) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Slot at = slot_of(p, blockIdx.x / unsigned(p.H), kChunk);
  if (at.count == 0) return;
  Gradients<KC, kGroups, kSplit> chunk{{p, w, dstates, memory, size, at}};
  fetch_vectors(chunk.base + chunk.layout.vectors, w.vectors + chunk.head * kVectorCount * kChunk);
  for (int64_t k0 = 0; k0 < p.K; k0 += KC) chunk.walk(k0);
  if (p.dlog_gate) chunk.sum_gates();
}

template <int KC, int kGroups, bool kSplit>
void launch_gradients(const DeltaProductBackward& p, const ChunkWork& w, const uint16_t* dstates,
                      const GradientSize& size, void* stream) {
  auto* kernel = sum_gradients<KC, kGroups, kSplit>;
  allow_shared(kernel, size.bytes);
  kernel<<<unsigned(chunk_slots(p, kChunk) * p.H), kGroups * 128, size.bytes,
           static_cast<cudaStream_t>(stream)>>>(p, w, dstates, size);
  check_launch("delta_product");
}

}  // namespace

void chunk_gradients(const DeltaProductBackward& p, const ChunkWork& w,
                     const StateGradients& dstates, void* stream) {
  if (chunk_slots(p, kChunk) * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_gradients(p, w, dstates, stream);
#endif
  const GradientSize size = gradient_size(p, w.rows, w.split);
  const auto launch = [&]<int KC, int kGroups>() {
    w.split ? launch_gradients<KC, kGroups, true>(p, w, dstates.chunks, size, stream)
            : launch_gradients<KC, kGroups, false>(p, w, dstates.chunks, size, stream);
  };
  if (size.keys == 32) return launch.template operator()<32, 2>();
  if (size.keys == 64) return launch.template operator()<64, 4>();
  launch.template operator()<128, 4>();
}

}  // namespace lrnn::kernels::cuda
