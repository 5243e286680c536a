#include <algorithm>

#include "kernels/cuda/rows/row_array.cuh"
#include "kernels/cuda/rows/rows.h"

// A row belongs to as many neighbouring threads as it has packs of eight values. Each keeps its
// columns of the matrix in registers and goes from row to row.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int64_t kMostBlocks = 512;

// This thread's columns, and the rows of its neighbours and it.
struct Place {
  int lanes;
  int64_t c, row, step;
  bool valid;  // lanes beyond the last pack only help to add up
  __device__ __forceinline__ Place(const FewLinear& p, int lanes) : lanes(lanes) {
    c = int64_t(threadIdx.x) % lanes * kPack;
    row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / lanes;
    step = int64_t(gridDim.x) * kThreads / lanes;
    valid = c < p.D;
  }
};

template <int N> struct Columns {
  float w[N][kPack];
  __device__ __forceinline__ Columns(const FewLinear& p, const Place& at) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      Pack<float> pack;
      if (at.valid && j < p.n) pack.load(p.type, p.weight, j * p.D + at.c, kPack, true);
#pragma unroll
      for (int i = 0; i < kPack; ++i) w[j][i] = at.valid && j < p.n ? pack.get(p.type, i) : 0.f;
    }
  }
};

template <int N>
__global__ void __launch_bounds__(kThreads) product(const FewLinear p, void* y, int lanes) {
  const Place at(p, lanes);
  const Columns<N> of(p, at);
  // All lanes of a warp stay until its last row, as shuffles want them to.
  const int64_t first = at.row - (threadIdx.x % 32) / unsigned(lanes);
  for (int64_t base = first; base < p.rows; base += at.step) {
    const int64_t row = base + (threadIdx.x % 32) / unsigned(lanes);
    Pack<float> x;
    const bool here = at.valid && row < p.rows;
    if (here) x.load(p.type, p.x, row * p.stride + at.c, kPack, true);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      if (here)
#pragma unroll
        for (int i = 0; i < kPack; ++i) sum += x.get(p.type, i) * of.w[j][i];
      sum = sum_of_lanes(sum, lanes);
      if (at.c == 0 && row < p.rows && j < p.n) store_as<float>(p.type, y, row * p.n + j, sum);
    }
  }
}

template <int N>
__global__ void __launch_bounds__(kThreads)
    gradients(const FewLinear p, const void* dy, void* dx, bool add, float* partial, int lanes) {
  __shared__ float all[kWarps][kMostFewColumns];
  const Place at(p, lanes);
  const Columns<N> of(p, at);
  float sums[N][kPack] = {};
  if (at.valid)
    for (int64_t row = at.row; row < p.rows; row += at.step) {
      Pack<float> x, before;
      x.load(p.type, p.x, row * p.stride + at.c, kPack, true);
      if (add) before.load(p.type, dx, row * p.D + at.c, kPack, true);
      float out[kPack];
#pragma unroll
      for (int i = 0; i < kPack; ++i) out[i] = add ? before.get(p.type, i) : 0.f;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        if (j >= p.n) break;
        const float d = load_as<float>(p.type, dy, row * p.n + j);
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          out[i] += d * of.w[j][i], sums[j][i] += d * x.get(p.type, i);
      }
      store_pack(p.type, dx, row * p.D + at.c, kPack, true, out);
    }
    // Over the rows that a warp had at once, then over warps.
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if (j >= p.n) break;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      float sum = sums[j][i];
      for (int d = lanes; d < 32; d *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
      if (at.valid && threadIdx.x % 32 < unsigned(lanes)) all[threadIdx.x / 32][at.c + i] = sum;
    }
    __syncthreads();
    for (int64_t c = threadIdx.x; c < p.D; c += kThreads) {
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) sum += all[warp][c];
      partial[(int64_t(blockIdx.x) * p.n + j) * p.D + c] = sum;
    }
  }
}

int64_t blocks_for(const FewLinear& p) {
  const int64_t at_once = kThreads / lanes_of(p.D);
  return std::clamp<int64_t>((p.rows + at_once - 1) / at_once, 1, kMostBlocks);
}

// Calls f with the number of rows that the registers are for.
template <class F> void for_rows(int64_t n, F&& f) {
  if (n <= 2)
    f(std::integral_constant<int, 2>());
  else if (n <= 4)
    f(std::integral_constant<int, 4>());
  else
    f(std::integral_constant<int, 8>());
}

}  // namespace

void few_product(const FewLinear& p, void* y, void* stream) {
  if (p.rows == 0) return;
  for_rows(p.n, [&](auto n) {
    product<n.value><<<unsigned(blocks_for(p)), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        p, y, lanes_of(p.D));
  });
  check_launch("few_linear");
}

int64_t few_parts(const FewLinear& p) { return blocks_for(p); }

void few_gradients(const FewLinear& p, const void* dy, void* dx, bool add, float* partial,
                   void* stream) {
  for_rows(p.n, [&](auto n) {
    gradients<n.value><<<unsigned(blocks_for(p)), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        p, dy, dx, add, partial, lanes_of(p.D));
  });
  check_launch("few_linear");
}

}  // namespace lrnn::kernels::cuda
