#include "kernels/cuda/delta_product/chunk.cuh"

// The forward sweep. A warp keeps 16 columns of the state as rows of S^T in float32 registers for
// the whole sequence, in the layout of an accumulator, which is also that of a left operand: S, R
// and D never pass through shared memory. All right operands are inputs or T and P, which all warps
// share. `kSplit` multiplies what rounding left over too, wherever the result enters the state.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kMostColumns = 128;  // of the state per block: 16 a warp

template <int KT> struct Layout {  // of one stage in shared memory, in bytes
  int k = 0, q, v, T, T_lo, P, P_lo, vectors, bytes;
  __host__ __device__ Layout(int rows, int columns, bool split) {
    q = k + kChunk * row_bytes(KT);
    v = q + rows * row_bytes(KT);
    T = v + kChunk * row_bytes(columns);
    T_lo = T + kChunk * row_bytes(kChunk);
    P = T_lo + (split ? lo_parts_of_T(KT) * kChunk * row_bytes(kChunk) : 0);
    P_lo = P + rows * row_bytes(kChunk);
    vectors = P_lo + (split ? rows * row_bytes(kChunk) : 0);
    bytes = vectors + kVectorCount * kChunk * int(sizeof(float));
  }
};

template <int KT, bool kSplit>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_forward(DeltaProductForward p, ChunkWork w, int columns) {
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
  const uint16_t* const v_rows =
      static_cast<const uint16_t*>(p.v.data) + row_at(p.v, span.b, span.t0, 0, h) + v_tile;
  const uint16_t* const q_rows =
      static_cast<const uint16_t*>(p.q.data) + (p.q.data ? row_at(p.q, span.b, span.t0, 0, h) : 0);

  const auto fetch = [&](int chunk) {
    const int64_t first = int64_t(chunk) * kChunk, at = (slot0 + chunk) * p.H + h;
    const int count = int(min(int64_t(kChunk), steps - first));
    const uint32_t stage = shared_address(memory) + (chunk & 1) * layout.bytes;
    fetch_rows<KT>(stage + layout.k, k_rows + first * p.k.step, p.k.step, kChunk, count, int(p.K));
    fetch_rows(stage + layout.v, v_rows + first * p.v.step, p.v.step, kChunk, count, columns,
               int(p.V - v_tile));
    fetch_square(stage + layout.T, w.T + at * kChunk * kChunk, kChunk);
    if (kSplit)
      fetch_square(stage + layout.T_lo, w.T_lo + at * 2 * kChunk * kChunk,
                   lo_parts_of_T(KT) * kChunk);
    if (p.q.data) {
      const Queries queries(p, first, count);
      fetch_rows<KT>(stage + layout.q, q_rows + queries.token * p.q.token, p.q.token, w.rows,
                     queries.rows, int(p.K));
      fetch_square(stage + layout.P, w.P + at * w.rows * kChunk, w.rows);
      if (kSplit) fetch_square(stage + layout.P_lo, w.P_lo + at * w.rows * kChunk, w.rows);
    }
    fetch_vectors(stage + layout.vectors, w.vectors + at * kVectorCount * kChunk);
  };

  // S[t] holds rows v0+g, v0+g+8 and key channels 8t+2c, +1.
  float S[kTiles][4];
  const float* const initial =
      p.state ? static_cast<const float*>(p.state) + head * p.K * p.V : nullptr;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + 2 * c + u % 2, v = v0 + g + u / 2 * 8;
      S[t][u] = initial && k < p.K && v < p.V ? initial[k * p.V + v] : 0.f;
    }

  const uint32_t direct_k = lane_direct(row_bytes(KT)), direct_c = lane_direct(row_bytes(kChunk));
  if (chunks > 0) fetch(0);
  copy_commit();
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (chunk + 1 < chunks) fetch(chunk + 1);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    const unsigned char* const here = memory + (chunk & 1) * layout.bytes;
    const uint32_t stage = shared_address(here);
    const float* const vectors = reinterpret_cast<const float*>(here + layout.vectors);
    const int64_t first = int64_t(chunk) * kChunk;
    const int count = int(min(int64_t(kChunk), steps - first));

    if (p.states && v0 < p.V)
      store_state<kSplit>(S, static_cast<uint16_t*>(p.states), w.states_lo,
                          (((slot0 + chunk) * p.H + h) * p.V + v0 + g) * p.K + 2 * c, p.K);

    // R = beta (v - a K S), then D = T R.
    float D[8][4];
    uint32_t R[4][4], R_lo[4][4];
    {
      float acc[8][4] = {};
#pragma unroll
      for (int k = 0; k < KT / 16; ++k) {
        uint32_t a[4], a_lo[4], b[4];
        as_operand<kSplit>(a, a_lo, S[2 * k], S[2 * k + 1]);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          ldmatrix(b, stage + layout.k + direct_k + n * 16 * row_bytes(KT) + k * 32);
          mma(acc[2 * n], a, b[0], b[1]);
          mma(acc[2 * n + 1], a, b[2], b[3]);
          if constexpr (kSplit) {
            mma(acc[2 * n], a_lo, b[0], b[1]);
            mma(acc[2 * n + 1], a_lo, b[2], b[3]);
          }
        }
      }
      const uint32_t v_at = stage + layout.v + lane_direct(row_bytes(columns)) + own * 2;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        uint32_t v[4];
        ldmatrix_transposed(v, v_at + n * 16 * row_bytes(columns));
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float(&x)[4] = acc[2 * n + half];
          const int i = (2 * n + half) * 8 + 2 * c;
          const float2 beta = *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + i);
          const float2 before = *reinterpret_cast<const float2*>(vectors + kBefore * kChunk + i);
          x[0] = beta.x * (low_of(v[2 * half]) - before.x * x[0]);
          x[1] = beta.y * (high_of(v[2 * half]) - before.y * x[1]);
          x[2] = beta.x * (low_of(v[2 * half + 1]) - before.x * x[2]);
          x[3] = beta.y * (high_of(v[2 * half + 1]) - before.y * x[3]);
        }
        as_operand<kSplit>(R[n], R_lo[n], acc[2 * n], acc[2 * n + 1]);
      }
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int u = 0; u < 4; ++u) D[2 * n][u] = D[2 * n + 1][u] = 0;
#pragma unroll
      for (int k = 0; k <= n; ++k) {  // T is triangular
        uint32_t b[4];
        const uint32_t at = direct_c + n * 16 * row_bytes(kChunk) + k * 32;
        ldmatrix(b, stage + layout.T + at);
        mma(D[2 * n], R[k], b[0], b[1]);
        mma(D[2 * n + 1], R[k], b[2], b[3]);
        if constexpr (kSplit) {
          mma(D[2 * n], R_lo[k], b[0], b[1]);
          mma(D[2 * n + 1], R_lo[k], b[2], b[3]);
          ldmatrix(b, stage + layout.T_lo + at);
          mma(D[2 * n], R[k], b[0], b[1]);
          mma(D[2 * n + 1], R[k], b[2], b[3]);
          mma(D[2 * n], R_lo[k], b[0], b[1]);
          mma(D[2 * n + 1], R_lo[k], b[2], b[3]);
        }
        if constexpr (kSplit && lo_parts_of_T(KT) == 2) {
          ldmatrix(b, stage + layout.T_lo + kChunk * row_bytes(kChunk) + at);
          mma(D[2 * n], R[k], b[0], b[1]);
          mma(D[2 * n + 1], R[k], b[2], b[3]);
        }
      }
    }

    if (p.error && v0 < p.V) {
      const int64_t to = (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 + (g & ~1);
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const int i = t * 8 + 2 * c + (g & 1);
        const float by = 1 / vectors[kBeta * kChunk + i];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float2 e = neighbours(D[t][2 * half], D[t][2 * half + 1]);
          if (i >= count) continue;
          const int64_t at = to + i * p.V + half * 8;
          const uint32_t packed = pack(by * e.x, by * e.y);
          *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(p.error) + at) = packed;
          if constexpr (kSplit)
            *reinterpret_cast<uint32_t*>(w.error_lo + at) = pack_lo(by * e.x, by * e.y, packed);
        }
      }
    }

    if (p.q.data) {
      const Queries queries(p, first, count);
      for (int r0 = 0; r0 < queries.rows; r0 += 32) {
        float O[4][4] = {};
        const uint32_t q_at = stage + layout.q + direct_k + r0 * row_bytes(KT);
#pragma unroll
        for (int k = 0; k < KT / 16; ++k) {
          uint32_t a[4], a_lo[4], b[4];
          as_operand<kSplit>(a, a_lo, S[2 * k], S[2 * k + 1]);
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            ldmatrix(b, q_at + n * 16 * row_bytes(KT) + k * 32);
            mma(O[2 * n], a, b[0], b[1]);
            mma(O[2 * n + 1], a, b[2], b[3]);
            if constexpr (kSplit) {
              mma(O[2 * n], a_lo, b[0], b[1]);
              mma(O[2 * n + 1], a_lo, b[2], b[3]);
            }
          }
        }
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const float2 read =
              *reinterpret_cast<const float2*>(vectors + kRead * kChunk + r0 + t * 8 + 2 * c);
          O[t][0] *= read.x, O[t][1] *= read.y, O[t][2] *= read.x, O[t][3] *= read.y;
        }
        const uint32_t p_at = stage + direct_c + r0 * row_bytes(kChunk);
        const int64_t last = queries.at(min(r0 + 31, queries.rows - 1));
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (k * 16 > last) continue;
          uint32_t a[4], a_lo[4], b[4];
          as_operand<kSplit>(a, a_lo, D[2 * k], D[2 * k + 1]);
#pragma unroll
          for (int n = 0; n < 2; ++n) {
            const uint32_t from = p_at + n * 16 * row_bytes(kChunk) + k * 32;
            ldmatrix(b, layout.P + from);
            mma(O[2 * n], a, b[0], b[1]);
            mma(O[2 * n + 1], a, b[2], b[3]);
            if constexpr (kSplit) {
              mma(O[2 * n], a_lo, b[0], b[1]);
              mma(O[2 * n + 1], a_lo, b[2], b[3]);
              ldmatrix(b, layout.P_lo + from);
              mma(O[2 * n], a, b[0], b[1]);
              mma(O[2 * n + 1], a, b[2], b[3]);
            }
          }
        }
        if (v0 >= p.V) continue;
        uint16_t* const o = static_cast<uint16_t*>(p.o.data) +
                            row_at(p.o, span.b, span.t0 + queries.token, 0, h) + v0 + (g & ~1);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const int r = r0 + t * 8 + 2 * c + (g & 1);
          const float2 upper = neighbours(O[t][0], O[t][1]), lower = neighbours(O[t][2], O[t][3]);
          if (r >= queries.rows) continue;
          *reinterpret_cast<uint32_t*>(o + r * p.o.token) = pack(upper.x, upper.y);
          *reinterpret_cast<uint32_t*>(o + r * p.o.token + 8) = pack(lower.x, lower.y);
        }
      }
    }

    // S = a_C S + (r K)^T D.
    const float decay = vectors[kBefore * kChunk + kChunk - 1];
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) S[t][u] *= decay;
    const uint32_t trans_k = stage + layout.k + lane_transposed(row_bytes(KT));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      uint32_t a[4], a_lo[4], b[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float(&x)[4] = D[2 * k + half];
        const float2 after = *reinterpret_cast<const float2*>(vectors + kAfter * kChunk +
                                                              (2 * k + half) * 8 + 2 * c);
        x[0] *= after.x, x[1] *= after.y, x[2] *= after.x, x[3] *= after.y;
      }
      as_operand<kSplit>(a, a_lo, D[2 * k], D[2 * k + 1]);
#pragma unroll
      for (int t = 0; t < kTiles; t += 2) {
        ldmatrix_transposed(b, trans_k + k * 16 * row_bytes(KT) + t * 16);
        mma(S[t], a, b[0], b[1]);
        mma(S[t + 1], a, b[2], b[3]);
        if constexpr (kSplit) {
          mma(S[t], a_lo, b[0], b[1]);
          mma(S[t + 1], a_lo, b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }
  copy_wait<0>();

  float* const to = static_cast<float*>(p.final_state) + head * p.K * p.V;
#pragma unroll
  for (int t = 0; t < kTiles; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t k = t * 8 + 2 * c + u % 2, v = v0 + g + u / 2 * 8;
      if (k < p.K && v < p.V) to[k * p.V + v] = S[t][u];
    }
}

template <int KT, bool kSplit>
void launch_forward(const DeltaProductForward& p, const ChunkWork& w, cudaStream_t stream) {
  int64_t tiles = (p.V + kMostColumns - 1) / kMostColumns;
  int columns = 0, bytes = 0;
  for (;; ++tiles) {  // wide keys leave room for fewer columns
    columns = int((p.V + tiles * 16 - 1) / (tiles * 16) * 16);
    bytes = 2 * Layout<KT>(w.rows, columns, kSplit).bytes;
    if (bytes <= kMostShared) break;
  }
  allow_shared(sweep_forward<KT, kSplit>, bytes);
  sweep_forward<KT, kSplit>
      <<<dim3(unsigned(p.S * p.H), unsigned(tiles)), columns * 2, bytes, stream>>>(p, w, columns);
  check_launch("delta_product");
}

template <int KT>
void launch_forward(const DeltaProductForward& p, const ChunkWork& w, cudaStream_t stream) {
  w.split ? launch_forward<KT, true>(p, w, stream) : launch_forward<KT, false>(p, w, stream);
}

}  // namespace

void chunk_forward(const DeltaProductForward& p, const ChunkWork& w,
                   [[maybe_unused]] const Segments& segments, void* stream) {
  if (p.S * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_forward(p, w, segments, stream);
#endif
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 32) return launch_forward<32>(p, w, on);
  if (p.K <= 64) return launch_forward<64>(p, w, on);
  if (p.K <= 128) return launch_forward<128>(p, w, on);
  return launch_forward<256>(p, w, on);
}

}  // namespace lrnn::kernels::cuda
