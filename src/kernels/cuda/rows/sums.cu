#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/tile/common.cuh"

// The second half of a reduction over blocks, in one order.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kColumns = 32, kSlices = 32;

// Each slice of threads takes every 32nd part: a few loads deep, however many parts there are.
template <class R>
__global__ void __launch_bounds__(kColumns* kSlices) add_parts_of(const Parts p) {
  __shared__ R sums[kSlices][kColumns];
  const int column = threadIdx.x % kColumns, slice = threadIdx.x / kColumns;
  const int64_t c = int64_t(blockIdx.x) * kColumns + column;
  R sum = 0;
  if (c < p.n) {
    const R* const from = static_cast<const R*>(p.from);
#pragma unroll 4
    for (int64_t i = slice; i < p.parts; i += kSlices) sum += from[i * p.n + c];
  }
  sums[slice][column] = sum;
  __syncthreads();
  if (slice > 0 || c >= p.n) return;
  sum = 0;
#pragma unroll
  for (int i = 0; i < kSlices; ++i) sum += sums[i][column];
  const int64_t along = p.n / p.across;
  store_as<R>(p.type, p.to, (c % along) * p.across + c / along, sum);
}

}  // namespace

void add_parts(const Parts& p, void* stream) {
  if (p.n == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const auto blocks = unsigned((p.n + kColumns - 1) / kColumns);
  if (p.wide)
    add_parts_of<double><<<blocks, kColumns * kSlices, 0, on>>>(p);
  else
    add_parts_of<float><<<blocks, kColumns * kSlices, 0, on>>>(p);
  check_launch("sums");
}

}  // namespace lrnn::kernels::cuda
