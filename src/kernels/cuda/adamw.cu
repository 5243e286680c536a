#include <algorithm>

#include "kernels/cuda/adamw.h"

namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 512;

// The sum over a block, in one order; every thread gets it.
__device__ double block_sum(double x, double* shared) {
  const int t = int(threadIdx.x);
  __syncthreads();
  shared[t] = x;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) shared[t] += shared[t + half];
    __syncthreads();
  }
  return shared[0];
}

__global__ void __launch_bounds__(kThreads) squares(AdamW a) {
  __shared__ double shared[kThreads];
  double sum = 0;
  for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < a.n;
       i += int64_t(gridDim.x) * kThreads)
    sum += double(a.grads[i]) * double(a.grads[i]);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = sum;
}

// Every block adds up the partial sums for itself: cheaper than another launch.
__global__ void __launch_bounds__(kThreads) update(AdamW a) {
  __shared__ double shared[kThreads];
  double sum = 0;
  for (int i = int(threadIdx.x); i < int(gridDim.x); i += kThreads) sum += a.partial[i];
  const double norm = sqrt(block_sum(sum, shared));
  const double clip = a.settings[3];
  const bool active = a.settings[5] != 0 && isfinite(norm) && isfinite(a.report[0]);
  if (blockIdx.x == 0 && threadIdx.x == 0) a.report[2] = norm, a.report[3] = active ? 1 : 0;
  if (!active) return;
  const float scale = clip > 0 ? float(fmin(1.0, clip / (norm + 1e-6))) : 1.f;
  const float rate = float(a.settings[0]), root = float(a.settings[1]), keep = float(a.settings[2]);
  for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < a.n;
       i += int64_t(gridDim.x) * kThreads) {
    const float g = a.grads[i] * scale;
    const float m = a.beta1 * a.m[i] + a.rest1 * g, v = a.beta2 * a.v[i] + a.rest2 * g * g;
    a.m[i] = m, a.v[i] = v;
    a.values[i] = a.values[i] * (a.decays[i] ? keep : 1.f) - rate * (m / (sqrtf(v) / root + a.eps));
  }
}

}  // namespace

int64_t adamw_blocks(int64_t n) {
  return std::clamp<int64_t>((n + kThreads - 1) / kThreads, 1, kMostBlocks);
}

void adamw(const AdamW& a, void* stream) {
  const auto blocks = unsigned(adamw_blocks(a.n));
  const auto on = static_cast<cudaStream_t>(stream);
  squares<<<blocks, kThreads, 0, on>>>(a);
  update<<<blocks, kThreads, 0, on>>>(a);
}

}  // namespace lrnn::kernels::cuda
