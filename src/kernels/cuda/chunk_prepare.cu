#include "kernels/cuda/chunk.cuh"

// T = (I + L)^-1 with L_ij = beta_i A_ij k_i.k_j below the diagonal, and P_rj = scale A_rj q_r.k_j,
// A the decay in between. The inverse is forward substitution on blocks of 16 in float32, then
// merges of split operands: with beta near 2 and keys alike, powers of L (the usual shortcut) reach
// 1e27.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kStride = kChunk + 4;
using Square = float[kChunk][kStride];
// beta = 0 would lose the error e = D / beta that the gradient of beta needs.
constexpr float kSmallestBeta = 0x1p-60f;

// A float32 operand as three bfloat16 ones. Products of all three are good to float32; of two, to
// 1e-4 in the inverse when keys are nearly equal, which is enough where it is then rounded.
struct Left {
  uint32_t part[3][4];
};
struct Right {
  uint32_t part[3][2];
};
__device__ __forceinline__ void split(float x, float y, uint32_t& a, uint32_t& b, uint32_t& c) {
  a = pack(x, y);
  x -= low_of(a), y -= high_of(a);
  b = pack(x, y), c = rest(x, y, b);
}
template <int kParts>
__device__ __forceinline__ void mma_split(float (&c)[4], const Left& a, const Right& b) {
#pragma unroll
  for (int sum = kParts - 1; sum >= 0; --sum)  // the small ones first
#pragma unroll
    for (int i = 0; i <= sum; ++i) mma(c, a.part[i], b.part[sum - i][0], b.part[sum - i][1]);
}

// 16x16 of a square as A(m,k) = M[m][k] or M[k][m].
template <bool kTransposed> __device__ __forceinline__ Left left_of(const float* M) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
  Left a;
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    const int m = g + u % 2 * 8, k = c + u / 2 * 8;
    if constexpr (kTransposed)
      split(M[k * kStride + m], M[(k + 1) * kStride + m], a.part[0][u], a.part[1][u], a.part[2][u]);
    else
      split(M[m * kStride + k], M[m * kStride + k + 1], a.part[0][u], a.part[1][u], a.part[2][u]);
  }
  return a;
}
// 16x8 of a square as B(k,n) = M[n][k].
__device__ __forceinline__ Right right_of(const float* M) {
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
  Right b;
#pragma unroll
  for (int u = 0; u < 2; ++u)
    split(M[g * kStride + c + u * 8], M[g * kStride + c + u * 8 + 1], b.part[0][u], b.part[1][u],
          b.part[2][u]);
  return b;
}

// From the inverses of two diagonal blocks of n rows at o to that of both: the block below the
// diagonal is -T11 (L10 T00). A warp takes 16 of its columns and 16 of its rows. L10 T00 is made
// transposed, because its accumulators then are right operands.
template <int n, int kParts>
__device__ void merge(Square& T, const Square& L, int o, int row0, int column0) {
  float M[n / 8][4] = {}, out[2][4] = {};
#pragma unroll
  for (int k = 0; k < n; k += 16) {
    const Left a = left_of<true>(&T[o + k][o + column0]);
#pragma unroll
    for (int t = 0; t < n / 8; ++t) mma_split<kParts>(M[t], a, right_of(&L[o + n + t * 8][o + k]));
  }
#pragma unroll
  for (int k = 0; k < n; k += 16) {
    const Left a = left_of<false>(&T[o + n + row0][o + n + k]);
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      Right b;
      split(M[k / 8][2 * t], M[k / 8][2 * t + 1], b.part[0][0], b.part[1][0], b.part[2][0]);
      split(M[k / 8 + 1][2 * t], M[k / 8 + 1][2 * t + 1], b.part[0][1], b.part[1][1], b.part[2][1]);
      mma_split<kParts>(out[t], a, b);
    }
  }
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4 * 2;
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u)
      T[o + n + row0 + g + u / 2 * 8][o + column0 + t * 8 + c + u % 2] = -out[t][u];
}

template <int kParts> __device__ void invert(Square& T, const Square& L) {
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

__device__ void fill_vectors(const DeltaProductInputs& p, Span span, const Slot& at, int64_t h,
                             const Queries& queries, float (&vectors)[kVectorCount][kChunk],
                             Square& decay) {
  const int i = threadIdx.x;
  if (i < kChunk) {
    float beta = 0, a = 1;
    if (i < at.count) {
      const uint32_t m = uint32_t(at.first) + i, N = uint32_t(p.N), t = m / N, j = m - t * N;
      const int64_t token = span.b * p.T + span.t0 + t;
      beta = static_cast<const float*>(p.beta)[(token * p.N + j) * p.H + h];
      if (beta == 0) beta = kSmallestBeta;
      if (p.log_gate && j == 0) a = expf(static_cast<const float*>(p.log_gate)[token * p.H + h]);
    }
    vectors[kBeta][i] = beta, vectors[kGate][i] = a;
    vectors[kBefore][i] = vectors[kAfter][i] = 1;
  }
  __syncthreads();
  if (p.log_gate) {
    fill_decay<kThreads>(vectors[kGate], decay);
    __syncthreads();
    if (i < kChunk) {
      vectors[kAfter][i] = decay[kChunk - 1][i];
      vectors[kBefore][i] = vectors[kGate][0] * decay[i][0];
    }
    __syncthreads();
  }
  if (i < kChunk)
    vectors[kRead][i] = i < queries.rows ? float(p.scale) * vectors[kBefore][queries.at(i)] : 0.f;
}

// Rows of `left` times all rows of `right`, up to the tile of 16 columns that holds column `last`.
template <int KT>
__device__ __forceinline__ void products(float (&acc)[8][4], uint32_t left, uint32_t right,
                                         int last) {
  constexpr int kStep = row_bytes(KT);
  const uint32_t a_at = left + lane_transposed(kStep), b_at = right + lane_direct(kStep);
#pragma unroll
  for (int t = 0; t < 8; ++t)
#pragma unroll
    for (int u = 0; u < 4; ++u) acc[t][u] = 0;
#pragma unroll 4
  for (int k = 0; k < KT / 16; ++k) {
    uint32_t a[4], b[4];
    ldmatrix(a, a_at + k * 32);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (n * 16 > last) continue;
      ldmatrix(b, b_at + n * 16 * kStep + k * 32);
      mma(acc[2 * n], a, b[0], b[1]);
      mma(acc[2 * n + 1], a, b[2], b[3]);
    }
  }
}

// T takes the place of the keys when they are done, L that of the queries; but with a gate L holds
// the decays while the queries are read.
template <int KT> struct Room {
  static constexpr int kSquare = int(sizeof(Square)), kKeys = kChunk * row_bytes(KT);
  int q = kKeys > kSquare ? kKeys : kSquare, L, bytes;
  __host__ __device__ Room(int rows, bool gate) {
    const int queries = rows * row_bytes(KT), both = queries > kSquare ? queries : kSquare;
    L = gate ? q + queries : q;
    bytes = gate ? L + kSquare : q + both;
  }
};

template <int KT>
__global__ void __launch_bounds__(kThreads) prepare(DeltaProductInputs p, ChunkWork w) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float vectors[kVectorCount][kChunk];
  const Room<KT> room(w.P ? w.rows : 0, p.log_gate);
  auto& T = *reinterpret_cast<Square*>(memory);
  auto& L = *reinterpret_cast<Square*>(memory + room.L);
  const uint32_t k_at = shared_address(memory), q_at = k_at + room.q;
  const int64_t slot = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const Slot at = slot_of(p, slot, kChunk);
  if (at.count == 0) return;
  const Span span = span_of(p, at.s);
  const Queries queries(p, at.first, at.count);
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, row0 = threadIdx.x / 32 * 16;

  fetch_rows<KT>(k_at,
                 static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, h) +
                     at.first * p.k.step,
                 p.k.step, kChunk, at.count, int(p.K));
  if (w.P)
    fetch_rows<KT>(
        q_at,
        static_cast<const uint16_t*>(p.q.data) + row_at(p.q, span.b, span.t0 + queries.token, 0, h),
        p.q.token, w.rows, queries.rows, int(p.K));
  copy_commit();
  fill_vectors(p, span, at, h, queries, vectors, L);
  copy_wait<0>();
  __syncthreads();

  float acc[8][4];
  const int read0 = w.rows - 16 - row0;  // long rows of P for the warps with short rows of L
  if (w.P && read0 >= 0) {
    const int64_t last_read = queries.at(read0 + 15);
    products<KT>(acc, q_at + read0 * row_bytes(KT), k_at,
                 int(last_read < kChunk ? last_read : kChunk - 1));
    uint16_t* const P = w.P + (slot * p.H + h) * w.rows * kChunk;
    uint16_t* const P_rest = w.P_rest + (w.split ? (slot * p.H + h) * w.rows * kChunk : 0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = read0 + g + 8 * half, last = r < queries.rows ? int(queries.at(r)) : -1;
      const float scale = float(p.scale);
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const int j = t * 8 + 2 * c;
        float x = j <= last ? scale * acc[t][2 * half] : 0.f;
        float y = j + 1 <= last ? scale * acc[t][2 * half + 1] : 0.f;
        if (p.log_gate && j <= last) x *= L[last][j];
        if (p.log_gate && j + 1 <= last) y *= L[last][j + 1];
        const uint32_t packed = pack(x, y);
        *reinterpret_cast<uint32_t*>(P + r * kChunk + j) = packed;
        if (w.split) *reinterpret_cast<uint32_t*>(P_rest + r * kChunk + j) = rest(x, y, packed);
      }
    }
  }
  products<KT>(acc, k_at + row0 * row_bytes(KT), k_at, row0 + 15);
  __syncthreads();  // the decays in L are read, and the keys
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = row0 + g + 8 * half;
    const float beta = vectors[kBeta][i];
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const int j = t * 8 + 2 * c;
      float2& to = *reinterpret_cast<float2*>(&L[i][j]);
      float x = j < i ? beta * acc[t][2 * half] : 0.f;
      float y = j + 1 < i ? beta * acc[t][2 * half + 1] : 0.f;
      if (p.log_gate && j < i) x *= to.x;
      if (p.log_gate && j + 1 < i) y *= to.y;
      to = make_float2(x, y);
    }
  }
  __syncthreads();
  w.split ? invert<3>(T, L) : invert<2>(T, L);

  uint16_t* const to = w.T + (slot * p.H + h) * kChunk * kChunk;
  uint16_t* const to_rest = w.T_rest + (w.split ? (slot * p.H + h) * kChunk * kChunk : 0);
#pragma unroll
  for (int piece = threadIdx.x; piece < kChunk * kChunk / 8; piece += kThreads) {
    const int i = piece / 8, j = piece % 8 * 8;
    uint4 hi, lo;
    float x[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) x[u] = j + u <= i ? T[i][j + u] : 0.f;
    hi = {pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7])};
    reinterpret_cast<uint4*>(to)[piece] = hi;
    if (!w.split) continue;
    lo = {rest(x[0], x[1], hi.x), rest(x[2], x[3], hi.y), rest(x[4], x[5], hi.z),
          rest(x[6], x[7], hi.w)};
    reinterpret_cast<uint4*>(to_rest)[piece] = lo;
  }
  for (int i = threadIdx.x; i < kVectorCount * kChunk; i += kThreads)
    w.vectors[(slot * p.H + h) * kVectorCount * kChunk + i] = vectors[i / kChunk][i % kChunk];
}

template <int KT>
void launch_prepare(const DeltaProductInputs& p, const ChunkWork& w, cudaStream_t stream) {
  const int bytes = Room<KT>(w.P ? w.rows : 0, p.log_gate).bytes;
  allow_shared(prepare<KT>, bytes);
  prepare<KT><<<unsigned(chunk_slots(p, kChunk) * p.H), kThreads, bytes, stream>>>(p, w);
  check_launch("delta_product");
}

}  // namespace

// The chunk kernels need Hopper's shared memory; chips with less get the exact ones.
bool chunk_fits(const DeltaProductInputs& p) {
  int device = 0, shared = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return shared >= kMostShared && p.type == Type::kBFloat16 && p.K % 8 == 0 && p.K <= 256 &&
         p.V % 16 == 0;
}
int chunk_query_rows(int64_t N) { return N == 1 ? 64 : 32; }
int64_t chunk_count(const DeltaProductInputs& p) { return chunk_slots(p, kChunk); }

bool hopper_fits(const DeltaProductInputs& p) {
#ifdef LRNN_HOPPER
  int device = 0, major = 0, minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  return major == 9 && minor == 0 && p.V % 64 == 0 && p.K > 32 && p.K <= 128;
#else
  return p.K < 0;
#endif
}

int64_t segment_map_size(const DeltaProductInputs& p) { return p.K * (p.K <= 64 ? 64 : 128); }
int chip_processors() { return processors(); }

void chunk_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream) {
  if (chunk_slots(p, kChunk) * p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 32) return launch_prepare<32>(p, w, on);
  if (p.K <= 64) return launch_prepare<64>(p, w, on);
  if (p.K <= 128) return launch_prepare<128>(p, w, on);
  return launch_prepare<256>(p, w, on);
}

}  // namespace lrnn::kernels::cuda
