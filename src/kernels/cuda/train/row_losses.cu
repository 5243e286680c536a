#include "kernels/cuda/tile/pack.cuh"
#include "kernels/cuda/train/losses.h"

// A block has a row. It reads it once from memory, with the largest value and the sum of the
// exponentials so far in every thread, and once more, from the cache, to overwrite it.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kSweep = kThreads * kPack;

// exp(x - most). A product of bfloat16 has no use for the last bits.
template <Type kType, class R> __device__ __forceinline__ R exp_below(R x, R most) {
  if constexpr (kType == Type::kBFloat16)
    return exp2f((x - most) * 1.4426950408889634f);
  else
    return exp_of(x - most);
}

template <Type kType, class R> struct Softmax {
  R most = -INFINITY, sum = 0;
  int64_t at = INT64_MAX;  // where the largest is, the first of several

  __device__ __forceinline__ void take(const R (&x)[kPack], int n, int64_t first) {
    R here = -INFINITY;
    int where = 0;
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < n && x[i] > here) here = x[i], where = i;
    if (here > most) {
      sum *= exp_below<kType>(most, here);
      most = here, at = first + where;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < n) sum += exp_below<kType>(x[i], most);
  }
  // In this order: the sum is not the same in the other.
  __device__ __forceinline__ void take(R other_most, R other_sum, int64_t other_at) {
    const R top = other_most > most ? other_most : most;
    // Whoever has seen nothing adds nothing, and must not make exp(-inf + inf) of it.
    const R mine = most == top ? R(1) : exp_below<kType>(most, top);
    const R others = other_most == top ? R(1) : exp_below<kType>(other_most, top);
    sum = sum * mine + other_sum * others;
    if (other_most > most || (other_most == most && other_at < at)) at = other_at;
    most = top;
  }
};

template <Type kType, class R>
__global__ void __launch_bounds__(kThreads) losses(const RowLosses p, bool wide) {
  __shared__ R warp_most[kWarps], warp_sum[kWarps];
  __shared__ int64_t warp_at[kWarps];
  const int64_t row = blockIdx.x, begin = row * p.stride, target = p.target[row];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  R* const loss = static_cast<R*>(p.loss) + row;
  R* const right = static_cast<R*>(p.right) + row;
  R x[kPack];
  const auto load = [&](int64_t first, int n) {
    Pack<R> pack;
    pack.load(kType, p.x, begin + first, n, wide);
#pragma unroll
    for (int i = 0; i < kPack; ++i) x[i] = pack.get(kType, i);
  };
  const auto count = [](int64_t first, int64_t end) {
    return int(end - first < kPack ? end - first : kPack);
  };
  if (target < 0) {
#pragma unroll
    for (int i = 0; i < kPack; ++i) x[i] = 0;
    for (int64_t i = threadIdx.x * kPack; p.gradient && i < p.stride; i += kSweep)
      store_pack<R>(kType, p.x, begin + i, count(i, p.stride), wide, x);
    if (threadIdx.x == 0) *loss = *right = 0;
    return;
  }
  Softmax<kType, R> s;
  for (int64_t i = threadIdx.x * kPack; i < p.V; i += kSweep) {
    const int n = count(i, p.V);
    load(i, n);
    s.take(x, n, i);
  }
  const R at_target = target < p.V ? load_as<R>(kType, p.x, begin + target) : R(NAN);
  for (int d = 16; d > 0; d /= 2) {
    const R most = __shfl_down_sync(0xffffffffu, s.most, d);
    const R sum = __shfl_down_sync(0xffffffffu, s.sum, d);
    const int64_t at = __shfl_down_sync(0xffffffffu, s.at, d);
    s.take(most, sum, at);
  }
  if (lane == 0) warp_most[warp] = s.most, warp_sum[warp] = s.sum, warp_at[warp] = s.at;
  __syncthreads();  // also: everybody has read the row
  Softmax<kType, R> all;
  for (int i = 0; i < kWarps; ++i) all.take(warp_most[i], warp_sum[i], warp_at[i]);
  if (threadIdx.x == 0) {
    *loss = all.most - at_target + log(all.sum);
    *right = all.at == target ? 1 : 0;
  }
  if (!p.gradient) return;
  const R share = R(p.share), scale = share / all.sum;
  for (int64_t i = threadIdx.x * kPack; i < p.stride; i += kSweep) {
    load(i, count(i, p.stride));
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const R p_j = i + j < p.V ? exp_below<kType>(x[j], all.most) * scale : R(0);
      x[j] = i + j == target ? p_j - share : p_j;
    }
    store_pack<R>(kType, p.x, begin + i, count(i, p.stride), wide, x);
  }
}

template <class R> __global__ void __launch_bounds__(kThreads) add_up(const RowLossSums p) {
  __shared__ double shared[kThreads][2];
  const int t = int(threadIdx.x);
  double sums[2] = {0, 0};
  for (int64_t i = t; i < p.rows; i += kThreads)
    sums[0] += double(static_cast<const R*>(p.loss)[i]),
        sums[1] += double(static_cast<const R*>(p.right)[i]);
  shared[t][0] = sums[0], shared[t][1] = sums[1];
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half)
      for (int j = 0; j < 2; ++j) shared[t][j] += shared[t + half][j];
    __syncthreads();
  }
  if (t > 0) return;
  *static_cast<R*>(p.loss_sum) = R(shared[0][0] * p.share);
  *static_cast<R*>(p.right_sum) = R(shared[0][1]);
}

}  // namespace

void row_losses(const RowLosses& p, void* stream) {
  if (p.rows == 0 || p.V == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto grid = unsigned(p.rows);
  const bool wide =
      reinterpret_cast<uintptr_t>(p.x) % 16 == 0 && p.stride * size_of(p.type) % 16 == 0;
  if (p.type == Type::kBFloat16)
    losses<Type::kBFloat16, float><<<grid, kThreads, 0, on>>>(p, wide);
  else if (p.type == Type::kFloat32)
    losses<Type::kFloat32, float><<<grid, kThreads, 0, on>>>(p, wide);
  else
    losses<Type::kFloat64, double><<<grid, kThreads, 0, on>>>(p, wide);
  check_launch("linear_cross_entropy");
}

void add_row_losses(const RowLossSums& p, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.type == Type::kFloat64)
    add_up<double><<<1, kThreads, 0, on>>>(p);
  else
    add_up<float><<<1, kThreads, 0, on>>>(p);
  check_launch("linear_cross_entropy");
}

}  // namespace lrnn::kernels::cuda
