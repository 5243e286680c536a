#include "kernels/cuda/rows/thin_linear.h"
#include "kernels/cuda/tile/common.cuh"

// A warp makes a column of y: it reads one row of the matrix, neighbouring 16 bytes per thread, and
// the rows of x, which all warps find in the cache. The matrix comes from memory once and is what
// takes the time, so as much of it as possible is on its way.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kAhead = 8;

template <class Io> struct Piece {  // 16 bytes
  static constexpr int kSize = 16 / int(sizeof(Io));
  float v[kSize];
  __device__ __forceinline__ explicit Piece(const uint4& bits) {
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kSize == 8) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
      } else {
        v[i] = __uint_as_float(words[i]);
      }
    }
  }
};

template <class Io, int M>
__global__ void __launch_bounds__(kThreads) product(const ThinLinear p, void* y) {
  constexpr int kSize = Piece<Io>::kSize;
  const int lane = threadIdx.x % 32, pieces = int(p.D) / kSize;
  const int64_t column = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (column >= p.n) return;
  const auto* const w =
      reinterpret_cast<const uint4*>(static_cast<const Io*>(p.weight) + column * p.D);
  const uint4* x[M];
#pragma unroll
  for (int m = 0; m < M; ++m)
    x[m] = reinterpret_cast<const uint4*>(static_cast<const Io*>(p.x) +
                                          min(int64_t(m), p.rows - 1) * p.stride);
  float sum[M] = {};
  for (int first = lane; first < pieces; first += 32 * kAhead) {
    uint4 of_w[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u)
      of_w[u] = first + 32 * u < pieces ? __ldcs(w + first + 32 * u) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      if (first + 32 * u >= pieces) break;
      const Piece<Io> a(of_w[u]);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        const Piece<Io> b(__ldg(x[m] + first + 32 * u));
#pragma unroll
        for (int i = 0; i < kSize; ++i) sum[m] += a.v[i] * b.v[i];
      }
    }
  }
#pragma unroll
  for (int m = 0; m < M; ++m) {
    const float all = sum_lanes<32>(sum[m]);
    if (lane == 0 && m < p.rows) store_as<float>(p.type, y, m * p.n + column, all);
  }
}

template <class Io> void launch(const ThinLinear& p, void* y, cudaStream_t stream) {
  const auto blocks = unsigned((p.n + kWarps - 1) / kWarps);
  if (p.rows == 1)
    product<Io, 1><<<blocks, kThreads, 0, stream>>>(p, y);
  else if (p.rows == 2)
    product<Io, 2><<<blocks, kThreads, 0, stream>>>(p, y);
  else
    product<Io, 4><<<blocks, kThreads, 0, stream>>>(p, y);
}

}  // namespace

void thin_product(const ThinLinear& p, void* y, void* stream) {
  if (p.rows == 0 || p.n == 0) return;
  const auto at = static_cast<cudaStream_t>(stream);
  p.type == Type::kBFloat16 ? launch<Bf16>(p, y, at) : launch<float>(p, y, at);
  check_launch("thin_linear");
}

}  // namespace lrnn::kernels::cuda
