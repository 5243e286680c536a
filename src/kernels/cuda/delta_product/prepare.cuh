#pragma once
#include "kernels/cuda/delta_product/decays.cuh"

// T = (I + L)^-1 with L_ij = beta_i A_ij k_i.k_j below the diagonal, and P_rj = scale A_rj q_r.k_j,
// A the decay in between, from the products of keys and queries in accumulators. The inverse is
// forward substitution on blocks of 16 in float32, then merges of split operands: with beta near 2
// and keys alike, powers of L (the usual shortcut) reach 1e27. A block of four warps has a chunk of
// a head, 16 rows of accumulators each.
namespace lrnn::kernels::cuda::prepare {

constexpr int kThreads = 128, kStride = kChunk + 4;
using Square = float[kChunk][kStride];

// Operands are float32 in three parts. Products of all three are good to float32; of two, to 1e-4
// in the inverse when keys are nearly equal, which is enough where it is then rounded. 16x16 of a
// square as A(m,k) = M[m][k] or M[k][m].
template <bool kTransposed> __device__ __forceinline__ Fragment<3> left_of(const float* M) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
  Fragment<3> a;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    const int m = g + u % 2 * 8, k = c + u / 2 * 8;
    if constexpr (kTransposed)
      a.set(u, M[k * kStride + m], M[(k + 1) * kStride + m]);
    else
      a.set(u, M[m * kStride + k], M[m * kStride + k + 1]);
  }
  return a;
}
// 16x8 of a square as B(k,n) = M[n][k].
__device__ __forceinline__ Fragment<3, 2> right_of(const float* M) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
  Fragment<3, 2> b;
#pragma unroll
  for (int u = 0; u < 2; ++u) b.set(u, M[g * kStride + c + u * 8], M[g * kStride + c + u * 8 + 1]);
  return b;
}

// From the inverses of two diagonal blocks of n rows at o to that of both: the block below the
// diagonal is -T11 (L10 T00). A warp takes 16 of its columns and 16 of its rows. L10 T00 is made
// transposed, because its accumulators then are right operands.
template <int n, int kParts>
__device__ __forceinline__ void merge(Square& T, const Square& L, int o, int row0, int column0) {
  float M[n / 8][4] = {}, out[2][4] = {};
#pragma unroll
  for (int k = 0; k < n; k += 16) {
    const auto a = left_of<true>(&T[o + k][o + column0]);
#pragma unroll
    for (int t = 0; t < n / 8; ++t)
      multiply_small_first<kParts>(M[t], a, right_of(&L[o + n + t * 8][o + k]));
  }
#pragma unroll
  for (int k = 0; k < n; k += 16) {
    const auto a = left_of<false>(&T[o + n + row0][o + n + k]);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      Fragment<3, 2> b;
      b.set(0, M[k / 8][2 * t], M[k / 8][2 * t + 1]);
      b.set(1, M[k / 8 + 1][2 * t], M[k / 8 + 1][2 * t + 1]);
      multiply_small_first<kParts>(out[t], a, b);
    }
  }
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u)
      T[o + n + row0 + g + u / 2 * 8][o + column0 + t * 8 + c + u % 2] = -out[t][u];
}

template <int kParts> __device__ __forceinline__ void invert(Square& T, const Square& L) {
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < kChunk) {
    const int o = threadIdx.x / 16 * 16, c = threadIdx.x % 16;
    float x[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) {
      x[r] = r == c ? 1.f : 0.f;
#pragma unroll
      for (int m = 0; m < r; ++m) x[r] -= L[o + r][o + m] * x[m];
      T[o + r][o + c] = x[r];
      if (o % 32 == 0) T[o + r][o + 16 + c] = 0;  // the merge of 32 rows reads this one too
    }
  }
  __syncthreads();
  if (warp < 2) merge<16, kParts>(T, L, warp * 32, 0, 0);
  __syncthreads();
  merge<32, kParts>(T, L, 0, warp / 2 * 16, warp % 2 * 16);
  __syncthreads();
}

// The chunk a block has.
struct Chunk {
  const DeltaProductInputs& p;
  const int64_t slot = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H),
                index = blockIdx.x;
  const Slot at = slot_of(p, slot, kChunk);
  const Span span = span_of(p, at.s);
  const Queries queries{p, at.first, at.count};

  __device__ const uint16_t* keys() const {
    return static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, h) +
           at.first * p.k.step;
  }
  __device__ const uint16_t* reads() const {
    return static_cast<const uint16_t*>(p.q.data) +
           row_at(p.q, span.b, span.t0 + queries.token, 0, h);
  }
};

// beta and the gate of a micro-step, one a thread.
struct Scalars {
  float beta = 0, gate = 1;
  __device__ Scalars(const DeltaProductInputs& p, const Chunk& z) {
    const int i = threadIdx.x;
    if (i >= z.at.count) return;
    const uint32_t m = uint32_t(z.at.first) + i, N = uint32_t(p.N), t = m / N, j = m - t * N;
    const int64_t token = z.span.b * p.T + z.span.t0 + t;
    beta = static_cast<const float*>(p.beta)[(token * p.N + j) * p.H + z.h];
    if (beta == 0) beta = kSmallestBeta;
    if (p.log_gate && j == 0) gate = expf(static_cast<const float*>(p.log_gate)[token * p.H + z.h]);
  }
};

__device__ __forceinline__ void fill_vectors(const DeltaProductInputs& p, const Chunk& z,
                                             const Scalars& scalars,
                                             float (&vectors)[kVectorCount][kChunk],
                                             Decays& decays) {
  const int i = threadIdx.x;
  if (i < kChunk) vectors[kBeta][i] = scalars.beta, vectors[kGate][i] = scalars.gate;
  if (p.log_gate) {
    __syncthreads();
    decays.fill(vectors[kGate]);
    __syncthreads();
  }
  if (i >= kChunk) return;
  const auto before = [&](int at) { return p.log_gate ? decays.before(at) : 1.f; };
  vectors[kBefore][i] = before(i), vectors[kAfter][i] = p.log_gate ? decays.after(i) : 1.f;
  vectors[kRead][i] = i < z.queries.rows ? float(p.scale) * before(int(z.queries.at(i))) : 0.f;
}

// T and P in memory: plain rows, or swizzled as the warp-group products read them (wgmma.cuh), so
// that they come to the sweeps in one piece. Where piece `p` of eight values of row i lies.
template <bool kSwizzled> __device__ __forceinline__ int place_in(int i, int p) {
  return i * 8 + (kSwizzled ? (p ^ i) & 7 : p);
}

// What a thread has of row g or g+8 of products, columns 8t+2c and +1.
using ProductRow = float[8][2];
__device__ __forceinline__ void take_row(ProductRow& row, const float (&acc)[8][4], int half) {
#pragma unroll
  for (int t = 0; t < 8; ++t) row[t][0] = acc[t][2 * half], row[t][1] = acc[t][2 * half + 1];
}
// Times the decays of micro-step i, and `by`.
__device__ __forceinline__ void decay_row(ProductRow& row, const Decays& decays, int i, float by) {
  const Decays::Row decay(decays, i, by);
#pragma unroll
  for (int t = 0; t < 8; ++t) {
    const float2 a = decay.at(t);
    row[t][0] *= a.x, row[t][1] *= a.y;
  }
}

// Rows row0+g, row0+g+8 of q k^T become P.
template <bool kSwizzled>
__device__ __forceinline__ void write_P(const DeltaProductInputs& p, const ChunkWork& w,
                                        const Chunk& z, const float (&acc)[8][4], int row0,
                                        const Decays& decays) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
  uint16_t* const P = w.P + z.index * w.rows * kChunk;
  uint16_t* const P_lo = w.P_lo + (w.split ? z.index * w.rows * kChunk : 0);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int r = row0 + g + 8 * half, last = r < z.queries.rows ? int(z.queries.at(r)) : -1;
    const float scale = float(p.scale);
    ProductRow row;
    take_row(row, acc, half);
    if (p.log_gate && last >= 0) {
      decay_row(row, decays, last, scale);
    } else {
#pragma unroll
      for (int t = 0; t < 8; ++t) row[t][0] *= scale, row[t][1] *= scale;
    }
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const int j = t * 8 + 2 * c;
      const float x = j <= last ? row[t][0] : 0.f, y = j + 1 <= last ? row[t][1] : 0.f;
      const uint32_t packed = pack(x, y);
      const int to = place_in<kSwizzled>(r, t) * 8 + 2 * c;
      *reinterpret_cast<uint32_t*>(P + to) = packed;
      if (w.split) *reinterpret_cast<uint32_t*>(P_lo + to) = pack_lo(x, y, packed);
    }
  }
}

// Rows of k k^T become L.
__device__ __forceinline__ void fill_L(const DeltaProductInputs& p, const float* beta,
                                       const float (&acc)[8][4], int row0, const Decays& decays,
                                       Square& L) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = row0 + g + 8 * half;
    ProductRow row;
    take_row(row, acc, half);
    if (p.log_gate) {
      decay_row(row, decays, i, beta[i]);
    } else {
#pragma unroll
      for (int t = 0; t < 8; ++t) row[t][0] *= beta[i], row[t][1] *= beta[i];
    }
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const int j = t * 8 + 2 * c;
      *reinterpret_cast<float2*>(&L[i][j]) =
          make_float2(j < i ? row[t][0] : 0.f, j + 1 < i ? row[t][1] : 0.f);
    }
  }
}

template <bool kSwizzled>
__device__ __forceinline__ void write_T(const ChunkWork& w, const Chunk& z, const Square& T) {
  uint16_t* const to = w.T + z.index * kChunk * kChunk;
  uint16_t* const to_lo = w.T_lo + (w.split ? z.index * 2 * kChunk * kChunk : 0);
#pragma unroll
  for (int piece = threadIdx.x; piece < kChunk * kChunk / 8; piece += kThreads) {
    const int i = piece / 8, j = piece % 8 * 8;
    float x[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) x[u] = j + u <= i ? T[i][j + u] : 0.f;
    Fragment<3> f;
#pragma unroll
    for (int u = 0; u < 4; ++u) f.set(u, x[2 * u], x[2 * u + 1]);
    const auto put = [&](uint16_t* matrix, const uint32_t(&from)[4]) {
      reinterpret_cast<uint4*>(matrix)[place_in<kSwizzled>(i, piece % 8)] =
          make_uint4(from[0], from[1], from[2], from[3]);
    };
    put(to, f.part[0]);
    if (!w.split) continue;
    put(to_lo, f.part[1]);
    put(to_lo + kChunk * kChunk, f.part[2]);
  }
}

// What is left of a block's work, once the products are done with keys and queries.
struct Shared {
  float (&vectors)[kVectorCount][kChunk];
  Decays& decays;
  Square &T, &L;
};
template <bool kSwizzled>
__device__ __forceinline__ void finish(const DeltaProductInputs& p, const ChunkWork& w,
                                       const Chunk& z, const Shared& shared,
                                       const float (&acc)[8][4], int row0) {
  auto& [vectors, decays, T, L] = shared;
  fill_L(p, vectors[kBeta], acc, row0, decays, L);
  __syncthreads();
  w.split ? invert<3>(T, L) : invert<2>(T, L);
  write_T<kSwizzled>(w, z, T);
  for (int i = threadIdx.x; i < kVectorCount * kChunk; i += kThreads)
    w.vectors[z.index * kVectorCount * kChunk + i] = vectors[i / kChunk][i % kChunk];
}

}  // namespace lrnn::kernels::cuda::prepare
