#include "kernels/cuda/delta_product/chunk.cuh"

// The backward sweep, from the last chunk to the first: the mirror of the forward one. G is the
// gradient of the state, kept as rows of G^T:
//   dD = diag(r) K G' + P^T dO,   Y = T^T dD,   dV = diag(beta) Y
//   G = a_C G' + (scale diag(a) Q)^T dO - (diag(beta a) K)^T Y
// It leaves G' of every chunk and dV, from which all other gradients follow for all chunks at once.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kMostColumns = 128;

template <int KT> struct Layout {  // of one stage in shared memory, in bytes
  int k = 0, q, d_o, T, T_lo, P, P_lo, vectors, bytes;
  __host__ __device__ Layout(int rows, int columns, bool split) {
    q = k + kChunk * row_bytes(KT);
    d_o = q + rows * row_bytes(KT);
    T = d_o + rows * row_bytes(columns);
    T_lo = T + kChunk * row_bytes(kChunk);
    P = T_lo + (split ? lo_parts_of_T(KT) * kChunk * row_bytes(kChunk) : 0);
    P_lo = P + rows * row_bytes(kChunk);
    vectors = P_lo + (split ? rows * row_bytes(kChunk) : 0);
    bytes = vectors + kVectorCount * kChunk * int(sizeof(float));
  }
};

template <int KT, bool kSplit>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_backward(DeltaProductBackward p, ChunkWork w, uint16_t* dstates, int columns) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kTiles = KT / 8;
  const Layout<KT> layout(w.rows, columns, kSplit);
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, own = threadIdx.x / 32 * 16;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const int64_t v_tile = int64_t(blockIdx.y) * columns, v0 = v_tile + own;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, head = s * p.H + h, slot0 = first_slot(p, s, kChunk);
  const int chunks = int((steps + kChunk - 1) / kChunk);
  const uint16_t* const k_rows =
      static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, h);
  const uint16_t* const q_rows =
      static_cast<const uint16_t*>(p.q.data) + (p.q.data ? row_at(p.q, span.b, span.t0, 0, h) : 0);
  const uint16_t* const do_rows = static_cast<const uint16_t*>(p.d_o.data) +
                                  (p.q.data ? row_at(p.d_o, span.b, span.t0, 0, h) + v_tile : 0);

  const auto fetch = [&](int chunk) {
    const int64_t first = int64_t(chunk) * kChunk, at = (slot0 + chunk) * p.H + h;
    const int count = int(min(int64_t(kChunk), steps - first));
    const uint32_t stage = shared_address(memory) + (chunk & 1) * layout.bytes;
    fetch_rows<KT>(stage + layout.k, k_rows + first * p.k.step, p.k.step, kChunk, count, int(p.K));
    fetch_square(stage + layout.T, w.T + at * kChunk * kChunk, kChunk);
    if (kSplit)
      fetch_square(stage + layout.T_lo, w.T_lo + at * 2 * kChunk * kChunk,
                   lo_parts_of_T(KT) * kChunk);
    if (p.q.data) {
      const Queries queries(p, first, count);
      fetch_rows<KT>(stage + layout.q, q_rows + queries.token * p.q.token, p.q.token, w.rows,
                     queries.rows, int(p.K));
      fetch_rows(stage + layout.d_o, do_rows + queries.token * p.d_o.token, p.d_o.token, w.rows,
                 queries.rows, columns, int(p.V - v_tile));
      fetch_square(stage + layout.P, w.P + at * w.rows * kChunk, w.rows);
      if (kSplit) fetch_square(stage + layout.P_lo, w.P_lo + at * w.rows * kChunk, w.rows);
    }
    fetch_vectors(stage + layout.vectors, w.vectors + at * kVectorCount * kChunk);
  };

  float G[kTiles][4];
  const float* const final =
      p.d_final_state ? static_cast<const float*>(p.d_final_state) + head * p.K * p.V : nullptr;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + 2 * c + u % 2, v = v0 + g + u / 2 * 8;
      G[t][u] = final && k < p.K && v < p.V ? final[k * p.V + v] : 0.f;
    }

  const uint32_t direct_k = lane_direct(row_bytes(KT));
  const uint32_t across_k = lane_transposed(row_bytes(KT)),
                 across_c = lane_transposed(row_bytes(kChunk));
  if (chunks > 0) fetch(chunks - 1);
  copy_commit();
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    if (chunk > 0) fetch(chunk - 1);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    const unsigned char* const here = memory + (chunk & 1) * layout.bytes;
    const uint32_t stage = shared_address(here);
    const float* const vectors = reinterpret_cast<const float*>(here + layout.vectors);
    const int64_t first = int64_t(chunk) * kChunk;
    const int count = int(min(int64_t(kChunk), steps - first));
    const Queries queries(p, first, count);
    const uint32_t do_at = stage + layout.d_o + lane_direct(row_bytes(columns)) + own * 2;

    if (v0 < p.V)
      store_state<kSplit>(G, dstates, w.dstates_lo,
                          (((slot0 + chunk) * p.H + h) * p.V + v0 + g) * p.K + 2 * c, p.K);

    float dD[8][4] = {};
#pragma unroll
    for (int k = 0; k < KT / 16; ++k) {
      uint32_t a[4], a_lo[4], b[4];
      as_operand<kSplit>(a, a_lo, G[2 * k], G[2 * k + 1]);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        ldmatrix(b, stage + layout.k + direct_k + n * 16 * row_bytes(KT) + k * 32);
        mma(dD[2 * n], a, b[0], b[1]);
        mma(dD[2 * n + 1], a, b[2], b[3]);
        if constexpr (kSplit) {
          mma(dD[2 * n], a_lo, b[0], b[1]);
          mma(dD[2 * n + 1], a_lo, b[2], b[3]);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const float2 after =
          *reinterpret_cast<const float2*>(vectors + kAfter * kChunk + t * 8 + 2 * c);
      dD[t][0] *= after.x, dD[t][1] *= after.y, dD[t][2] *= after.x, dD[t][3] *= after.y;
    }
    const float decay = vectors[kBefore * kChunk + kChunk - 1];
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) G[t][u] *= decay;

    for (int k = 0; k * 16 < queries.rows; ++k) {
      uint32_t a[4], b[4];
      ldmatrix_transposed(a, do_at + k * 16 * row_bytes(columns));
      const int64_t last = queries.at(min(k * 16 + 15, queries.rows - 1));
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (n * 16 > last) continue;
        const uint32_t at = across_c + k * 16 * row_bytes(kChunk) + n * 32;
        ldmatrix_transposed(b, stage + layout.P + at);
        mma(dD[2 * n], a, b[0], b[1]);
        mma(dD[2 * n + 1], a, b[2], b[3]);
        if constexpr (kSplit) {
          ldmatrix_transposed(b, stage + layout.P_lo + at);
          mma(dD[2 * n], a, b[0], b[1]);
          mma(dD[2 * n + 1], a, b[2], b[3]);
        }
      }
      // G += (scale a Q)^T dO, while dO is here.
      const float2 x = *reinterpret_cast<const float2*>(vectors + kRead * kChunk + k * 16 + 2 * c);
      const float2 y =
          *reinterpret_cast<const float2*>(vectors + kRead * kChunk + k * 16 + 8 + 2 * c);
      uint32_t a_lo[4];
      const float left[4] = {x.x * low_of(a[0]), x.y * high_of(a[0]), x.x * low_of(a[1]),
                             x.y * high_of(a[1])};
      const float right[4] = {y.x * low_of(a[2]), y.y * high_of(a[2]), y.x * low_of(a[3]),
                              y.y * high_of(a[3])};
      as_operand<kSplit>(a, a_lo, left, right);
#pragma unroll
      for (int t = 0; t < kTiles; t += 2) {
        ldmatrix_transposed(b, stage + layout.q + across_k + k * 16 * row_bytes(KT) + t * 16);
        mma(G[t], a, b[0], b[1]);
        mma(G[t + 1], a, b[2], b[3]);
        if constexpr (kSplit) {
          mma(G[t], a_lo, b[0], b[1]);
          mma(G[t + 1], a_lo, b[2], b[3]);
        }
      }
    }

    float Y[8][4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      uint32_t a[4], a_lo[4], b[4];
      as_operand<kSplit>(a, a_lo, dD[2 * k], dD[2 * k + 1]);
#pragma unroll
      for (int n = 0; n <= k; ++n) {  // T is triangular
        const uint32_t at = across_c + k * 16 * row_bytes(kChunk) + n * 32;
        ldmatrix_transposed(b, stage + layout.T + at);
        mma(Y[2 * n], a, b[0], b[1]);
        mma(Y[2 * n + 1], a, b[2], b[3]);
        if constexpr (kSplit) {
          mma(Y[2 * n], a_lo, b[0], b[1]);
          mma(Y[2 * n + 1], a_lo, b[2], b[3]);
          ldmatrix_transposed(b, stage + layout.T_lo + at);
          mma(Y[2 * n], a, b[0], b[1]);
          mma(Y[2 * n + 1], a, b[2], b[3]);
          mma(Y[2 * n], a_lo, b[0], b[1]);
          mma(Y[2 * n + 1], a_lo, b[2], b[3]);
        }
        if constexpr (kSplit && lo_parts_of_T(KT) == 2) {
          ldmatrix_transposed(b, stage + layout.T_lo + kChunk * row_bytes(kChunk) + at);
          mma(Y[2 * n], a, b[0], b[1]);
          mma(Y[2 * n + 1], a, b[2], b[3]);
        }
      }
    }

    uint16_t* const dv = static_cast<uint16_t*>(p.dv.data) + row_at(p.dv, span.b, span.t0, 0, h) +
                         first * p.dv.step + v0 + (g & ~1);
    uint16_t* const dv_lo =
        w.dv_lo + (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 + (g & ~1);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const float2 beta =
          *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + t * 8 + 2 * c);
      Y[t][0] *= beta.x, Y[t][1] *= beta.y, Y[t][2] *= beta.x, Y[t][3] *= beta.y;
      const float2 upper = neighbours(Y[t][0], Y[t][1]), lower = neighbours(Y[t][2], Y[t][3]);
      const int i = t * 8 + 2 * c + (g & 1);
      if (i < count && v0 < p.V) {
        const uint32_t x = pack(upper.x, upper.y), y = pack(lower.x, lower.y);
        *reinterpret_cast<uint32_t*>(dv + i * p.dv.step) = x;
        *reinterpret_cast<uint32_t*>(dv + i * p.dv.step + 8) = y;
        if constexpr (kSplit) {
          *reinterpret_cast<uint32_t*>(dv_lo + i * p.V) = pack_lo(upper.x, upper.y, x);
          *reinterpret_cast<uint32_t*>(dv_lo + i * p.V + 8) = pack_lo(lower.x, lower.y, y);
        }
      }
      const float2 before =
          *reinterpret_cast<const float2*>(vectors + kBefore * kChunk + t * 8 + 2 * c);
      Y[t][0] *= -before.x, Y[t][1] *= -before.y, Y[t][2] *= -before.x, Y[t][3] *= -before.y;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      uint32_t a[4], a_lo[4], b[4];
      as_operand<kSplit>(a, a_lo, Y[2 * k], Y[2 * k + 1]);
#pragma unroll
      for (int t = 0; t < kTiles; t += 2) {
        ldmatrix_transposed(b, stage + layout.k + across_k + k * 16 * row_bytes(KT) + t * 16);
        mma(G[t], a, b[0], b[1]);
        mma(G[t + 1], a, b[2], b[3]);
        if constexpr (kSplit) {
          mma(G[t], a_lo, b[0], b[1]);
          mma(G[t + 1], a_lo, b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }
  copy_wait<0>();
  if (!p.dstate) return;
  float* const to = static_cast<float*>(p.dstate) + head * p.K * p.V;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + 2 * c + u % 2, v = v0 + g + u / 2 * 8;
      if (k < p.K && v < p.V) to[k * p.V + v] = G[t][u];
    }
}

template <int KT, bool kSplit>
void launch_reverse(const DeltaProductBackward& p, const ChunkWork& w, uint16_t* dstates,
                    cudaStream_t stream) {
  int64_t tiles = (p.V + kMostColumns - 1) / kMostColumns;
  int columns = 0, bytes = 0;
  for (;; ++tiles) {  // wide keys leave room for fewer columns
    columns = int((p.V + tiles * 16 - 1) / (tiles * 16) * 16);
    bytes = 2 * Layout<KT>(w.rows, columns, kSplit).bytes;
    if (bytes <= kMostShared) break;
  }
  allow_shared(sweep_backward<KT, kSplit>, bytes);
  sweep_backward<KT, kSplit>
      <<<dim3(unsigned(p.S * p.H), unsigned(tiles)), columns * 2, bytes, stream>>>(p, w, dstates,
                                                                                   columns);
  check_launch("delta_product");
}

template <int KT>
void launch_reverse(const DeltaProductBackward& p, const ChunkWork& w, uint16_t* dstates,
                    cudaStream_t stream) {
  w.split ? launch_reverse<KT, true>(p, w, dstates, stream)
          : launch_reverse<KT, false>(p, w, dstates, stream);
}

}  // namespace

void chunk_reverse(const DeltaProductBackward& p, const ChunkWork& w,
                   [[maybe_unused]] const Segments& segments, const StateGradients& dstates,
                   void* stream) {
  if (p.S * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_reverse(p, w, segments, dstates, stream);
#endif
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 32) return launch_reverse<32>(p, w, dstates.chunks, on);
  if (p.K <= 64) return launch_reverse<64>(p, w, dstates.chunks, on);
  if (p.K <= 128) return launch_reverse<128>(p, w, dstates.chunks, on);
  return launch_reverse<256>(p, w, dstates.chunks, on);
}

}  // namespace lrnn::kernels::cuda
