#include "kernels/cuda/delta_product/hopper.cuh"

// From the state after the first segment and the maps S -> M S + B of the next ones to the states
// between them, one segment after the other in float32; or from the gradient before the last
// segment and its maps, G -> M^T G + C, backwards. A block takes 32 columns of a head; the next map
// comes in while it multiplies with this one.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kColumns = 32, kThreads = 256;

template <int KT> struct Shared {
  static constexpr int kStride = KT + 4;  // so that rows begin in different banks
  float map[2][KT][kStride];
  float state[KT][kColumns];
};

template <int KT, bool kForwards>
__global__ void __launch_bounds__(kThreads) join(DeltaProductInputs p, Segments segments) {
  extern __shared__ __align__(16) unsigned char memory[];
  pdl_trigger();
  pdl_wait();
  auto& shared = *reinterpret_cast<Shared<KT>*>(memory);
  const int K = int(p.K), count = segments.count;
  const int64_t head = blockIdx.x, matrix = p.K * p.V, v0 = int64_t(blockIdx.y) * kColumns;
  // A thread makes rows row .. row+3 and columns column .. column+3.
  const int row = threadIdx.x / 8 * 4, column = threadIdx.x % 8 * 4;
  const auto segment = [&](int n) { return kForwards ? n : count - 1 - n; };
  const auto fetch = [&](int n) {
    const float* const from = segments.maps + (head * count + segment(n)) * p.K * KT;
    for (int at = threadIdx.x; at < K * KT / 4; at += kThreads)
      copy_async(shared_address(&shared.map[n & 1][at / (KT / 4)][at % (KT / 4) * 4]),
                 from + at * 4);
  };
  fetch(1);
  copy_commit();
  const float* const first = segments.between + (head * count + segment(0)) * matrix + v0;
  for (int i = threadIdx.x; i < K * kColumns; i += kThreads)
    shared.state[i / kColumns][i % kColumns] = first[i / kColumns * p.V + i % kColumns];
  for (int n = 1; n < count - 1; ++n) {
    if (n + 1 < count - 1) fetch(n + 1);
    copy_commit();
    float* const to =
        segments.between + (head * count + segment(n)) * matrix + row * p.V + v0 + column;
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

template <int KT, bool kForwards>
void launch_join(const DeltaProductInputs& p, const Segments& segments, cudaStream_t stream) {
  auto* kernel = join<KT, kForwards>;
  allow_shared(kernel, sizeof(Shared<KT>));
  pdl_launch(kernel, dim3(unsigned(p.S * p.H), unsigned(p.V / kColumns)), kThreads,
             int(sizeof(Shared<KT>)), stream, p, segments);
}

}  // namespace

void hopper_join(const DeltaProductInputs& p, const Segments& segments, bool forwards,
                 void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (segments.count < 3) return;  // nothing lies between the first and the last
  if (p.K <= 64)
    forwards ? launch_join<64, true>(p, segments, on) : launch_join<64, false>(p, segments, on);
  else
    forwards ? launch_join<128, true>(p, segments, on) : launch_join<128, false>(p, segments, on);
}

}  // namespace lrnn::kernels::cuda
