#include <algorithm>
#include <type_traits>

#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/tile/common.cuh"

// A thread has one block and some rows. Neighbouring threads have neighbouring blocks, so that
// loads and stores run along a row; the matrix, or its gradient, stays in registers.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kRowsEach = 4;
// For gradients: blocks of the channels in a block of threads, and threads that share one.
constexpr int kColumns = 32, kShares = kMostBlockSide;
constexpr int64_t kMostParts = 64, kFewestRows = 64;

template <class Io, int kSide>
struct alignas(sizeof(Io) * kSide < 16 ? sizeof(Io) * kSide : 16) Side {
  Io x[kSide];
};

__device__ __forceinline__ float value_of(float x) { return x; }
__device__ __forceinline__ double value_of(double x) { return x; }
__device__ __forceinline__ float value_of(Bf16 x) {
  return __uint_as_float(uint32_t(x.bits) << 16);
}
__device__ __forceinline__ void set(float& to, float x) { to = x; }
__device__ __forceinline__ void set(double& to, double x) { to = x; }
__device__ __forceinline__ void set(Bf16& to, float x) { to.bits = to_bf16(x); }

// The channels of one block; `whole`: it fills a side and lies where a side can be loaded.
template <class R, class Io, int kSide>
__device__ __forceinline__ void load_side(const void* x, int64_t at, int n, bool whole,
                                          R (&to)[kSide]) {
  const Io* const from = static_cast<const Io*>(x) + at;
  if (whole) {
    const auto side = *reinterpret_cast<const Side<Io, kSide>*>(from);
#pragma unroll
    for (int i = 0; i < kSide; ++i) to[i] = value_of(side.x[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i) to[i] = i < n ? R(value_of(from[i])) : R(0);
}
template <class R, class Io, int kSide>
__device__ __forceinline__ void store_side(void* y, int64_t at, int n, bool whole,
                                           const R (&x)[kSide]) {
  Io* const to = static_cast<Io*>(y) + at;
  if (whole) {
    Side<Io, kSide> side;
#pragma unroll
    for (int i = 0; i < kSide; ++i) set(side.x[i], x[i]);
    *reinterpret_cast<Side<Io, kSide>*>(to) = side;
    return;
  }
#pragma unroll
  for (int i = 0; i < kSide; ++i)
    if (i < n) set(to[i], x[i]);
}

template <class R, class Io, int kSide>
__global__ void __launch_bounds__(kThreads)
    product(const BlockLinear p, const void* weight, const void* x, bool transposed, void* y,
            int64_t groups, bool whole) {
  const int64_t thread = int64_t(blockIdx.x) * kThreads + threadIdx.x, first = thread / p.blocks,
                block = thread - first * p.blocks;
  if (first >= groups) return;
  const int in = int(transposed ? p.out : p.in), out = int(transposed ? p.in : p.out);
  R w[kSide][kSide];  // [out][in]
#pragma unroll
  for (int o = 0; o < kSide; ++o)
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      const int64_t row = transposed ? i : o, column = transposed ? o : i;
      w[o][i] =
          o < out && i < in ? load<R, Io>(weight, (block * p.out + row) * p.in + column) : R(0);
    }
#pragma unroll 4
  for (int64_t r = first; r < p.rows; r += groups) {
    R from[kSide], to[kSide];
    load_side<R, Io>(x, (r * p.blocks + block) * in, in, whole, from);
#pragma unroll
    for (int o = 0; o < kSide; ++o) {
      to[o] = 0;
#pragma unroll
      for (int i = 0; i < kSide; ++i) to[o] += w[o][i] * from[i];
    }
    store_side<R, Io>(y, (r * p.blocks + block) * out, out, whole, to);
  }
}

// A run of rows and some blocks; kShares threads divide the rows among them.
template <class R, class Io, int kSide>
__global__ void __launch_bounds__(kColumns* kShares)
    gradient(const BlockLinear p, const void* dy, const void* x, R* partial, int64_t each,
             bool whole) {
  __shared__ R sums[kShares][kSide][kColumns];
  const int column = threadIdx.x % kColumns, share = threadIdx.x / kColumns;
  const int64_t block = int64_t(blockIdx.y) * kColumns + column, begin = blockIdx.x * each,
                end = min(begin + each, p.rows);
  const int in = int(p.in), out = int(p.out);
  R sum[kSide][kSide] = {};
  if (block < p.blocks) {
#pragma unroll 4
    for (int64_t r = begin + share; r < end; r += kShares) {
      R from[kSide], slope[kSide];
      load_side<R, Io>(x, (r * p.blocks + block) * in, in, whole, from);
      load_side<R, Io>(dy, (r * p.blocks + block) * out, out, whole, slope);
#pragma unroll
      for (int o = 0; o < kSide; ++o)
#pragma unroll
        for (int i = 0; i < kSide; ++i) sum[o][i] += slope[o] * from[i];
    }
  }
#pragma unroll
  for (int o = 0; o < kSide; ++o) {  // over the shares, a row at a time
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kSide; ++i) sums[share][i][column] = sum[o][i];
    __syncthreads();
    if (block >= p.blocks || o >= out || share >= in) continue;
    R total = 0;
#pragma unroll
    for (int s = 0; s < kShares; ++s) total += sums[s][share][column];
    partial[((blockIdx.x * p.blocks + block) * p.out + o) * p.in + share] = total;
  }
}

// Calls f(a zero to compute in, an element, side).
template <class F> void with_kind(const BlockLinear& p, F&& f) {
  const auto by_side = [&](auto zero, auto element) {
    p.in <= 4 && p.out <= 4 ? f(zero, element, std::integral_constant<int, 4>())
                            : f(zero, element, std::integral_constant<int, 8>());
  };
  switch (p.type) {
    case Type::kFloat64: return by_side(double(), double());
    case Type::kFloat32: return by_side(float(), float());
    case Type::kBFloat16: return by_side(float(), Bf16());
  }
}

// Whether both sides fill a side of the kernel and lie on 16 bytes.
bool fills(const BlockLinear& p, const void* x, const void* y) {
  return p.in == p.out && (p.in == 4 || p.in == 8) &&
         (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
}

}  // namespace

void block_product(const BlockLinear& p, const void* weight, const void* x, bool transposed,
                   void* y, void* stream) {
  if (p.rows == 0 || p.blocks == 0) return;
  const int64_t groups = (p.rows + kRowsEach - 1) / kRowsEach,
                grid = (groups * p.blocks + kThreads - 1) / kThreads;
  check(grid < (int64_t(1) << 31), "[block_linear] too many rows and blocks for a grid");
  with_kind(p, [&](auto zero, auto element, auto side) {
    product<decltype(zero), decltype(element), decltype(side)::value>
        <<<unsigned(grid), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
            p, weight, x, transposed, y, groups, fills(p, x, y));
  });
  check_launch("block_linear");
}

int64_t block_parts(const BlockLinear& p) {
  return std::min(kMostParts, (p.rows + kFewestRows - 1) / kFewestRows);
}

void block_gradient(const BlockLinear& p, const void* dy, const void* x, void* partial,
                    void* stream) {
  if (p.rows == 0 || p.blocks == 0) return;
  const int64_t parts = block_parts(p), columns = (p.blocks + kColumns - 1) / kColumns;
  check(columns < 65536, "[block_linear] too many blocks for a grid");
  with_kind(p, [&](auto zero, auto element, auto side) {
    using R = decltype(zero);
    gradient<R, decltype(element), decltype(side)::value>
        <<<dim3(unsigned(parts), unsigned(columns)), kColumns * kShares, 0,
           static_cast<cudaStream_t>(stream)>>>(p, dy, x, static_cast<R*>(partial),
                                                (p.rows + parts - 1) / parts, fills(p, dy, x));
  });
  check_launch("block_linear");
}

}  // namespace lrnn::kernels::cuda
