#include "kernels/cuda/delta_product/chunk_channels.cuh"
#include "kernels/cuda/delta_product/prepare.cuh"

// The matrices of all chunks with gates of key channels, a block of four warps each. A pair of
// micro-steps j < i multiplies channel by channel with the decay in between, exp(s_i - s_j). That
// is cut in two at a micro-step between them, as often as a chunk can be halved: rows i of the
// second half of a piece decay from its middle on, columns j of the first half up to it. No factor
// is above 1, nothing is divided by a decay, and what is left is a product of matrices.
namespace lrnn::kernels::cuda {
namespace {

using namespace channels;
using prepare::Square;
constexpr int kThreads = prepare::kThreads;

template <int KT> struct Shared {
  static constexpr int kRows = kChunk * row_bytes(KT), kSquare = int(sizeof(Square));
  static constexpr int kLarge = kRows > kSquare ? kRows : kSquare;
  // When all pairs are made: T takes the place of the keys, L that of the queries, P that of sums.
  static constexpr int k = 0, q = k + kLarge, sum = q + kLarge, bytes = sum + int(sizeof(Sums<KT>));
  static_assert(kSquare <= int(sizeof(Sums<KT>)));
};

template <int KT> struct Pairs {
  const unsigned char *k_rows, *q_rows;
  const Sums<KT>& sum;
  const int g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;

  __device__ __forceinline__ static float2 at(const unsigned char* rows, int i, int channel) {
    const uint32_t x = *reinterpret_cast<const uint32_t*>(rows + i * row_bytes(KT) + 2 * channel);
    return make_float2(low_of(x), high_of(x));
  }
  __device__ __forceinline__ static void put(Fragment<2>& f, int word, float2 x, float2 by) {
    f.set(word, x.x * by.x, x.y * by.y);
  }

  // Rows i0 .. i0+15 of queries and of keys times keys j0 .. j0+15, parted before row `middle`.
  __device__ __forceinline__ void block(Tile& with_q, Tile& with_k, int i0, int j0,
                                        int middle) const {
#pragma unroll 2
    for (int first = 0; first < KT; first += 16) {
      Fragment<2> q, k, right;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int channel = first + 8 * e + 2 * c;
        const float2 m = pair_at(&sum[middle][channel]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = i0 + g + 8 * half, j = j0 + g + 8 * half;
          const float2 down = decay(pair_at(&sum[i + 1][channel]), m),
                       up = decay(m, pair_at(&sum[j + 1][channel]));
          put(q, 2 * e + half, at(q_rows, i, channel), down);
          put(k, 2 * e + half, at(k_rows, i, channel), down);
          put(right, 2 * half + e, at(k_rows, j, channel), up);
        }
      }
      multiply(with_q[0], with_q[1], q, right);
      multiply(with_k[0], with_k[1], k, right);
    }
  }

  // Within 16 micro-steps from `first` on, pieces of 2 `half`: rows of queries above rows of keys,
  // those of the second halves, times the keys of the first ones. Results count where row and
  // column are of one piece.
  __device__ __forceinline__ int column(int n, int half) const {
    return n / half * 2 * half + n % half;
  }
  __device__ __forceinline__ void within(float (&acc)[4], int first, int half) const {
    const int j = first + column(g, half), i = j + half, middle = i - g % half;
#pragma unroll 2
    for (int from = 0; from < KT; from += 16) {
      Fragment<2> left;
      Fragment<2, 2> right;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int channel = from + 8 * e + 2 * c;
        const float2 m = pair_at(&sum[middle][channel]);
        const float2 down = decay(pair_at(&sum[i + 1][channel]), m),
                     up = decay(m, pair_at(&sum[j + 1][channel]));
        put(left, 2 * e, at(q_rows, i, channel), down);
        put(left, 2 * e + 1, at(k_rows, i, channel), down);
        const float2 key = at(k_rows, j, channel);
        right.set(e, key.x * up.x, key.y * up.y);
      }
      multiply_small_first<2>(acc, left, right);
    }
  }
};

// Which of the six blocks of 16 x 16 below the diagonal, and where it is parted.
struct Block {
  int i0, j0, middle;
  __device__ __forceinline__ explicit Block(int n)
      : i0(n == 0            ? 16
           : n == 1 || n > 3 ? 48
                             : 32),
        j0(n == 1                ? 32
           : n > 1 && n % 2 == 1 ? 16
                                 : 0),
        middle(n == 0   ? 16
               : n == 1 ? 48
                        : 32) {}
};

// A row of 8 numbers, those beyond column `last` zero, to its parts.
template <int kParts>
__device__ __forceinline__ void store_piece(unsigned char* to, int plane, const float* from, int j,
                                            int last) {
  uint32_t part[4][kParts];
#pragma unroll
  for (int u = 0; u < 4; ++u)
    split(j + 2 * u <= last ? from[2 * u] : 0.f, j + 2 * u + 1 <= last ? from[2 * u + 1] : 0.f,
          part[u]);
#pragma unroll
  for (int i = 0; i < kParts; ++i)
    *reinterpret_cast<uint4*>(to + i * plane) =
        make_uint4(part[0][i], part[1][i], part[2][i], part[3][i]);
}
template <int kParts>
__device__ __forceinline__ void store_lower(unsigned char* to, const Square& M) {
  for (int piece = threadIdx.x; piece < kChunk * kChunk / 8; piece += kThreads) {
    const int i = piece / 8, j = piece % 8 * 8;
    store_piece<kParts>(to + piece * 16, kChunk * kChunk * 2, &M[i][j], j, i);
  }
}

// Kg, Qg and Kr.
template <int KT, bool kSplit>
__device__ __forceinline__ void store_keys(unsigned char* record, const Pairs<KT>& pairs,
                                           float scale, bool has_q) {
  using At = Record<KT, kSplit>;
  for (int piece = threadIdx.x; piece < kChunk * KT / 8; piece += kThreads) {
    const int i = piece / (KT / 8), channel = piece % (KT / 8) * 8;
    float kg[8], qg[8], kr[8];
#pragma unroll
    for (int u = 0; u < 8; u += 2) {
      const float2 s = pair_at(&pairs.sum[i + 1][channel + u]),
                   end = pair_at(&pairs.sum[kChunk][channel + u]);
      const float2 a = decay(s, make_float2(0, 0)), r = decay(end, s);
      const float2 k = pairs.at(pairs.k_rows, i, channel + u),
                   q = pairs.at(pairs.q_rows, i, channel + u);
      kg[u] = a.x * k.x, kg[u + 1] = a.y * k.y, kr[u] = r.x * k.x, kr[u + 1] = r.y * k.y;
      qg[u] = scale * a.x * q.x, qg[u + 1] = scale * a.y * q.y;
    }
    const auto put = [&](int matrix, const float(&x)[8]) {
      store_piece<At::kParts>(record + matrix + piece * 16, At::kKeys, x, 0, 8);
    };
    put(At::kKg, kg), put(At::kKr, kr);
    if (has_q) put(At::kQg, qg);
  }
}

template <int KT, bool kSplit>
__global__ void __launch_bounds__(kThreads)
    prepare_channels(DeltaProductInputs p, unsigned char* work) {
  using At = Record<KT, kSplit>;
  using Places = Shared<KT>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float beta[kChunk];
  auto& sum = *reinterpret_cast<Sums<KT>*>(memory + Places::sum);
  auto& T = *reinterpret_cast<Square*>(memory + Places::k);
  auto& L = *reinterpret_cast<Square*>(memory + Places::q);
  auto& P = *reinterpret_cast<Square*>(memory + Places::sum);
  const prepare::Chunk z{p};
  if (z.at.count == 0) return;
  unsigned char* const record = work + z.index * At::kBytes;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, c = threadIdx.x % 4;

  const uint32_t base = shared_address(memory);
  fetch_rows<KT>(base + Places::k, z.keys(), p.k.step, kChunk, z.at.count, int(p.K));
  fetch_queries({base + Places::q, row_bytes(KT)}, p.q.data ? z.reads() : z.keys(), p.q.token,
                z.queries, int(p.K));  // without queries there are no rows
  copy_commit();
  if (threadIdx.x < kChunk) {
    const int i = threadIdx.x;
    float b = 0;
    if (i < z.at.count) {
      const int64_t first = (z.span.b * p.T + z.span.t0) * p.N + z.at.first;
      b = static_cast<const float*>(p.beta)[(first + i) * p.H + z.h];
      if (b == 0) b = kSmallestBeta;
    }
    beta[i] = b;
    reinterpret_cast<float*>(record + At::kBeta)[i] = b;
  }
  fill_sums<KT>(sum, p, z.span, z.at, z.h);
  copy_wait<0>();
  __syncthreads();

  const Pairs<KT> pairs{memory + Places::k, memory + Places::q, sum};
  store_keys<KT, kSplit>(record, pairs, float(p.scale), p.q.data);
  if (threadIdx.x < KT)
    reinterpret_cast<float*>(record + At::kDecay)[threadIdx.x] = fast_exp(sum[kChunk][threadIdx.x]);

  Tile with_q[2] = {}, with_k[2] = {};
  pairs.block(with_q[0], with_k[0], Block(warp).i0, Block(warp).j0, Block(warp).middle);
  const Block more(4 + warp);
  if (warp < 2) pairs.block(with_q[1], with_k[1], more.i0, more.j0, more.middle);
  float near[4][4] = {};
#pragma unroll
  for (int level = 0; level < 4; ++level) pairs.within(near[level], warp * 16, 8 >> level);
  // q_i k_i, half of the channels a thread.
  float same = 0;
  for (int n = 0; n < KT / 2; n += 2) {
    const int i = threadIdx.x / 2, channel = threadIdx.x % 2 * (KT / 2) + n;
    const float2 q = pairs.at(pairs.q_rows, i, channel), k = pairs.at(pairs.k_rows, i, channel);
    same += q.x * k.x + q.y * k.y;
  }
  same = sum_lanes<2>(same);
  __syncthreads();  // keys, queries and sums have been read

  const float scale = float(p.scale);
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    if (n == 1 && warp >= 2) continue;
    const Block of(4 * n + warp);
    each([&](int t, int u, int row, int column) {
      const int i = of.i0 + row, j = of.j0 + column;
      P[i][j] = scale * with_q[n][t][u], L[i][j] = beta[i] * with_k[n][t][u];
    });
  }
#pragma unroll
  for (int level = 0; level < 4; ++level) {
    const int half = 8 >> level, i = warp * 16 + pairs.column(g, half) + half;
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int n = 2 * c + u, j = warp * 16 + pairs.column(n, half);
      if (n / half != g / half) continue;
      P[i][j] = scale * near[level][u], L[i][j] = beta[i] * near[level][2 + u];
    }
  }
  if (threadIdx.x % 2 == 0) P[threadIdx.x / 2][threadIdx.x / 2] = scale * same;
  __syncthreads();
  if (p.q.data) store_lower<At::kParts>(record + At::kP, P);
  kSplit ? prepare::invert<3>(T, L) : prepare::invert<2>(T, L);
  store_lower<At::kTParts>(record + At::kT, T);
}

}  // namespace

bool channel_chunk_fits(const DeltaProductInputs& p) {
  return chip().shared >= kMostShared && p.channels && p.type == Type::kBFloat16 && p.K % 8 == 0 &&
         p.K > 16 && p.K <= 128 && p.V % 16 == 0;
}

int64_t channel_work_size(const DeltaProductInputs& p, bool split) {
  int64_t bytes = 0;
  with_record(p, split, [&]<int KT, bool kSplit>() { bytes = Record<KT, kSplit>::kBytes; });
  return bytes * chunk_slots(p, kChunk) * p.H;
}

void channel_prepare(const DeltaProductInputs& p, const ChannelChunks& w, void* stream) {
  const int64_t blocks = chunk_slots(p, kChunk) * p.H;
  if (blocks == 0) return;
  with_record(p, w.split, [&]<int KT, bool kSplit>() {
    auto* kernel = prepare_channels<KT, kSplit>;
    allow_shared(kernel, Shared<KT>::bytes);
    kernel<<<unsigned(blocks), kThreads, Shared<KT>::bytes, static_cast<cudaStream_t>(stream)>>>(
        p, static_cast<unsigned char*>(w.work));
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
