#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/tile/common.cuh"

// A value a thread.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Rounded as x is: see ops/wide_sigmoid/wide_sigmoid.h.
template <class R> __device__ __forceinline__ R sigmoid_at(const Sigmoid& p, int64_t i) {
  const R s = 1 / (1 + exp_of(-load_as<R>(p.type, p.x, i)));
  return p.type == Type::kBFloat16 ? R(__uint_as_float(uint32_t(to_bf16(float(s))) << 16)) : s;
}

template <class R> __global__ void __launch_bounds__(kThreads) values(const Sigmoid p, R* y) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < p.n) y[i] = R(p.scale) * sigmoid_at<R>(p, i);
}

template <class R>
__global__ void __launch_bounds__(kThreads) slopes(const Sigmoid p, const R* dy, void* dx) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.n) return;
  const R s = sigmoid_at<R>(p, i);
  store_as<R>(p.type, dx, i, dy[i] * R(p.scale) * s * (1 - s));
}

unsigned blocks_for(int64_t n) {
  const int64_t blocks = (n + kThreads - 1) / kThreads;
  check(blocks < (int64_t(1) << 31), "[sigmoid] too many values for a grid");
  return unsigned(blocks);
}

}  // namespace

void sigmoid_forward(const Sigmoid& p, void* y, void* stream) {
  if (p.n == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.type == Type::kFloat64)
    values<double><<<blocks_for(p.n), kThreads, 0, on>>>(p, static_cast<double*>(y));
  else
    values<float><<<blocks_for(p.n), kThreads, 0, on>>>(p, static_cast<float*>(y));
  check_launch("sigmoid");
}

void sigmoid_backward(const Sigmoid& p, const void* dy, void* dx, void* stream) {
  if (p.n == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.type == Type::kFloat64)
    slopes<double><<<blocks_for(p.n), kThreads, 0, on>>>(p, static_cast<const double*>(dy), dx);
  else
    slopes<float><<<blocks_for(p.n), kThreads, 0, on>>>(p, static_cast<const float*>(dy), dx);
  check_launch("sigmoid");
}

}  // namespace lrnn::kernels::cuda
