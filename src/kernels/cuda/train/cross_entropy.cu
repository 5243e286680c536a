#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/train/losses.h"

// One pass over every row; sums of blocks are added up by a second launch, in one order.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 2048;  // the second launch adds them up

// A row belongs to as many neighbouring threads as it has values, up to a warp.
int lanes_of(int64_t V) {
  int lanes = 1;
  while (lanes < 32 && lanes < V) lanes *= 2;
  return lanes;
}

struct Best {
  float value;
  int64_t at;
  __device__ __forceinline__ void take(float v, int64_t i) {
    // NaN is the largest, as torch's argmax has it; of equals the first.
    const bool more = v > value || (isnan(v) && !isnan(value));
    const bool same = v == value || (isnan(v) && isnan(value));
    if (more || (same && i < at)) value = v, at = i;
  }
};

__device__ void add_pairs(double (&pair)[2], double (*shared)[2]) {
  const int t = int(threadIdx.x);
  shared[t][0] = pair[0], shared[t][1] = pair[1];
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half)
      for (int j = 0; j < 2; ++j) shared[t][j] += shared[t + half][j];
    __syncthreads();
  }
  pair[0] = shared[0][0], pair[1] = shared[0][1];
}

__global__ void __launch_bounds__(kThreads) rows_of(const CrossEntropy p, int lanes) {
  __shared__ double shared[kThreads][2];
  const int lane = int(threadIdx.x) % lanes, own = int(threadIdx.x) / lanes,
            at_once = kThreads / lanes;
  const float share = float(*p.share);
  const float right = 1 - p.smoothing, others = p.smoothing / float(p.V);  // as targets
  double sums[2] = {0, 0};
  // All lanes of a warp go round equally often: they exchange values.
  for (int64_t first = int64_t(blockIdx.x) * at_once; first < p.rows;
       first += int64_t(gridDim.x) * at_once) {
    const int64_t row = first + own;
    const bool valid = row < p.rows;
    const int64_t target = valid ? p.target[row] : -1;
    Best best{-INFINITY, INT64_MAX};
    if (target >= 0)
      for (int64_t i = lane; i < p.V; i += lanes)
        best.take(load_as<float>(p.type, p.x, row * p.stride + i), i);
    for (int d = 1; d < lanes; d *= 2) {
      const float value = __shfl_xor_sync(0xffffffffu, best.value, d);
      const int64_t at = __shfl_xor_sync(0xffffffffu, best.at, d);
      best.take(value, at);
    }
    float sum = 0, below = 0;  // of exp(x - the largest), of that difference
    if (target >= 0)
      for (int64_t i = lane; i < p.V; i += lanes) {
        const float x = load_as<float>(p.type, p.x, row * p.stride + i) - best.value;
        sum += expf(x), below += x;
      }
    for (int d = 1; d < lanes; d *= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, d);
      below += __shfl_xor_sync(0xffffffffu, below, d);
    }
    if (!valid) continue;
    for (int64_t i = lane; i < p.V; i += lanes) {
      float dx = 0;
      if (target >= 0) {
        const float x = load_as<float>(p.type, p.x, row * p.stride + i);
        const float wanted = (i == target ? right : 0.f) + others;
        dx = (expf(x - best.value) / sum - wanted) * share;
      }
      store_as<float>(p.type, p.dx, row * p.V + i, dx);
    }
    if (target < 0 || lane > 0) continue;
    const float x = target < p.V ? load_as<float>(p.type, p.x, row * p.stride + target) : NAN;
    float reached = right * (x - best.value);
    if (p.smoothing > 0) reached += others * below;  // 0 times a logit of -inf is no number
    sums[0] += double(logf(sum) - reached);
    sums[1] += best.at == target ? 1 : 0;
  }
  add_pairs(sums, shared);
  if (threadIdx.x == 0)
    for (int j = 0; j < 2; ++j) p.partial[2 * blockIdx.x + j] = sums[j];
}

__global__ void __launch_bounds__(kThreads) add_up(const CrossEntropy p, int blocks) {
  __shared__ double shared[kThreads][2];
  double sums[2] = {0, 0};
  for (int i = int(threadIdx.x); i < blocks; i += kThreads)
    for (int j = 0; j < 2; ++j) sums[j] += p.partial[2 * i + j];
  add_pairs(sums, shared);
  if (threadIdx.x > 0) return;
  // Rounded before it is added, not fused: processes add up the same numbers of their own parts.
  p.report[0] = __dadd_rn(p.report[0], __dmul_rn(sums[0], *p.share));
  p.report[1] += sums[1];
}

}  // namespace

int64_t cross_entropy_blocks(int64_t rows, int64_t V) {
  const int64_t at_once = kThreads / lanes_of(V), blocks = (rows + at_once - 1) / at_once;
  return blocks < kMostBlocks ? blocks : kMostBlocks;
}

void cross_entropy(const CrossEntropy& p, void* stream) {
  if (p.rows == 0 || p.V == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const int64_t blocks = cross_entropy_blocks(p.rows, p.V);
  rows_of<<<unsigned(blocks), kThreads, 0, on>>>(p, lanes_of(p.V));
  add_up<<<1, kThreads, 0, on>>>(p, int(blocks));
  check_launch("cross_entropy");
}

}  // namespace lrnn::kernels::cuda
