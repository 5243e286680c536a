#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/tile/pack.cuh"

// Where heads share keys, every head leaves its own gradient of them. Their sum is taken in the
// order of the heads, eight channels a thread: one pass over memory, and the same bits every time.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <class R> __global__ void __launch_bounds__(kThreads) add_all(const SharedGradient p) {
  const int64_t packs = (p.K + kPack - 1) / kPack;
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x, row = at / packs;
  if (row >= p.rows) return;
  const int64_t column = (at - row * packs) * kPack;
  const int n = int(min(int64_t(kPack), p.K - column));
  const bool wide = p.K % kPack == 0;
  R sum[kPack] = {};
#pragma unroll 4
  for (int64_t i = 0; i < p.group; ++i) {
    Pack<R> x;
    x.load(p.type, p.heads, (row * p.group + i) * p.K + column, n, wide);
#pragma unroll
    for (int u = 0; u < kPack; ++u) sum[u] += x.get(p.type, u);
  }
  store_pack(p.type, p.sums, row * p.K + column, n, wide, sum);
}

}  // namespace

void add_heads(const SharedGradient& p, void* stream) {
  const int64_t threads = p.rows * ((p.K + kPack - 1) / kPack);
  if (threads == 0) return;
  const auto blocks = unsigned((threads + kThreads - 1) / kThreads);
  const auto on = static_cast<cudaStream_t>(stream);
  p.type == Type::kFloat64 ? add_all<double><<<blocks, kThreads, 0, on>>>(p)
                           : add_all<float><<<blocks, kThreads, 0, on>>>(p);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
