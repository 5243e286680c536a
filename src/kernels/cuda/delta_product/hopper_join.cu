#include "kernels/cuda/delta_product/hopper.cuh"

// From the state after the first segment and the maps S -> M S + B of the next ones to the states
// between them, one segment after the other in float32; or from the gradient before the last
// segment and its maps, G -> M^T G + C, backwards. A block takes 32 columns of a head; the next map
// comes in while it multiplies with this one.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kColumns = 32, kThreads = 256;

// The segments of a sequence and head, in arrays [slots,H,...]: the n-th from where one begins.
struct Line {
  int64_t first, step;
  int count;
  __device__ Line(const DeltaProductInputs& p, const Segments& segments, bool forwards) {
    const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H),
                  steps = int64_t(segments.chunks) * kChunk;
    count = segments.count, first = s * count, step = p.H;
    if (p.cu_seqlens) {
      first = first_slot(p, s, steps);
      count = int((span_of(p, s).length * p.N + steps - 1) / steps);
    }
    first = first * p.H + h;
    if (!forwards) first += (count - 1) * step, step = -step;
  }
  __device__ int64_t at(int n) const { return first + n * step; }
};

template <int KT> struct Shared {
  static constexpr int kStride = KT + 4;  // so that rows begin in different banks
  float map[2][KT][kStride];
  float state[KT][kColumns];
};

template <int KT, bool kForwards>
__global__ void __launch_bounds__(kThreads) join(DeltaProductInputs p, Segments segments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  pdl_trigger();
  pdl_wait();
  auto& shared = *reinterpret_cast<Shared<KT>*>(memory);
  const Line line(p, segments, kForwards);
  const int K = int(p.K), count = line.count;
  if (count < 3) return;  // nothing lies between the first and the last
  const int64_t matrix = p.K * p.V, v0 = int64_t(blockIdx.y) * kColumns;
  // A thread makes rows row .. row+3 and columns column .. column+3.
  const int row = threadIdx.x / 8 * 4, column = threadIdx.x % 8 * 4;
  const auto fetch = [&](int n) {
    const float* const from = segments.maps + line.at(n) * KT * KT;
    for (int at = threadIdx.x; at < K * KT / 4; at += kThreads)
      copy_async(shared_address(&shared.map[n & 1][at / (KT / 4)][at % (KT / 4) * 4]),
                 from + at * 4);
  };
  fetch(1);
  copy_commit();
  const float* const first = segments.between + line.at(0) * matrix + v0;
  for (int i = threadIdx.x; i < K * kColumns; i += kThreads)
    shared.state[i / kColumns][i % kColumns] = first[i / kColumns * p.V + i % kColumns];
  for (int n = 1; n < count - 1; ++n) {
    if (n + 1 < count - 1) fetch(n + 1);
    copy_commit();
    float* const to = segments.between + line.at(n) * matrix + row * p.V + v0 + column;
    float sum[4][4];
    if (row < K)
#pragma unroll
      for (int r = 0; r < 4; ++r) load_four(to + r * p.V, sum[r]);
    copy_wait<1>();
    __syncthreads();
    if (row < K) {
#pragma unroll 2
      for (int j = 0; j < K; j += 4) {
        float m[4][4], x[4][4];
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          load_four(kForwards ? &shared.map[n & 1][row + u][j] : &shared.map[n & 1][j + u][row],
                    m[u]);
          load_four(&shared.state[j + u][column], x[u]);
        }
#pragma unroll
        for (int u = 0; u < 4; ++u)
#pragma unroll
          for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int c = 0; c < 4; ++c) sum[r][c] += (kForwards ? m[r][u] : m[u][r]) * x[u][c];
      }
    }
    __syncthreads();
    if (row < K)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float4 x = make_float4(sum[r][0], sum[r][1], sum[r][2], sum[r][3]);
        *reinterpret_cast<float4*>(&shared.state[row + r][column]) = x;
        *reinterpret_cast<float4*>(to + r * p.V) = x;
      }
  }
  copy_wait<0>();
}

// ------------------------------------------------------------------------- on the tensor cores
// The same in products of numbers in two bfloat16 parts, which is more than enough beside sweeps of
// one: a warp group has 64 columns of the state in registers, as rows of its transpose, and the
// next maps are on their way.
constexpr int kGroup = 128, kMapsAhead = 3;

template <int KT, bool kForwards>
__global__ void __launch_bounds__(kGroup, 1)
    join_products(DeltaProductInputs p, Segments segments) {
  extern __shared__ __align__(1024) unsigned char memory[];
  constexpr int kTile = KT * 128, kPart = KT * KT * 2, kMap = 2 * kPart;
  pdl_trigger();
  const uint32_t base = shared_address(memory), barriers = base + kMapsAhead * kMap;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kMapsAhead; ++i) barrier_init(barriers + i * 8, 1);
    wgmma::publish();
  }
  __syncthreads();
  pdl_wait();
  const Line line(p, segments, kForwards);
  const int maps = line.count - 2;
  const auto between = [&](int n) {
    return place_between<KT / 8>(segments.between + line.at(n) * KT * p.V,
                                 int64_t(blockIdx.y) * 64);
  };
  const auto fetch = [&](int n) {  // the map of the n-th after the first
    const uint32_t at = n % kMapsAhead;
    if (threadIdx.x > 0 || n >= maps) return;
    barrier_expect(barriers + at * 8, kMap);
    bring(barriers + at * 8, base + at * kMap, segments.maps + line.at(n + 1) * KT * KT, kMap);
  };
  if (maps < 1) return;
  for (int n = 0; n < kMapsAhead; ++n) fetch(n);
  float S[KT / 8][4], next[KT / 8][4];
  get_between(S, between(0));
  get_between(next, between(1));
  for (int n = 0; n < maps; ++n) {
    Fragment<2> a[KT / 16];
    as_fragments(a, S);
#pragma unroll
    for (int t = 0; t < KT / 8; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) S[t][u] = next[t][u];
    wgmma::hold(S);
    // On its way while these products run.
    get_between(next, between(min(n + 2, maps)));
    barrier_wait(barriers + n % kMapsAhead * 8, n / kMapsAhead % 2);
    const uint32_t map = base + n % kMapsAhead * kMap;
    wgmma::fence();
    if constexpr (kForwards) {
      times_columns<false>(S, a, map, kTile);
      times_columns<false, 1>(S, a, map + kPart, kTile);
    } else {
      times_rows<false, kTile>(S, a, map);
      times_rows<false, kTile, 1>(S, a, map + kPart);
    }
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(S);
    __syncthreads();
    fetch(n + kMapsAhead);
    put_between(S, between(n + 1));
  }
}

template <int KT, bool kForwards>
void launch_join(const DeltaProductInputs& p, const Segments& segments, bool split,
                 cudaStream_t stream) {
  const unsigned heads = unsigned(p.S * p.H);
  if (split) {
    auto* kernel = join<KT, kForwards>;
    constexpr int kBytes = int(sizeof(Shared<KT>));
    allow_shared(kernel, kBytes);
    pdl_launch(kernel, dim3(heads, unsigned(p.V / kColumns)), kThreads, kBytes, stream, p,
               segments);
  } else {
    auto* kernel = join_products<KT, kForwards>;
    constexpr int kBytes = kMapsAhead * (KT * KT * 4 + 8);
    allow_shared(kernel, kBytes);
    pdl_launch(kernel, dim3(heads, unsigned(p.V / 64)), kGroup, kBytes, stream, p, segments);
  }
}

}  // namespace

void hopper_join(const DeltaProductInputs& p, const Segments& segments, bool forwards, bool split,
                 void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 64)
    forwards ? launch_join<64, true>(p, segments, split, on)
             : launch_join<64, false>(p, segments, split, on);
  else
    forwards ? launch_join<128, true>(p, segments, split, on)
             : launch_join<128, false>(p, segments, split, on);
}

}  // namespace lrnn::kernels::cuda
