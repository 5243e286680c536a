#include "kernels/cuda/rwkv7/chunk_pairs.cuh"

// The matrices of all chunks, a block each.
namespace lrnn::kernels::cuda::rwkv7 {
namespace {

// y = T x, T lower triangular.
__device__ __forceinline__ void times_lower(const float (&T)[kTokens][kTokens + 4],
                                            const float (&x)[kTokens], float (&y)[kTokens]) {
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    float sum = 0;
#pragma unroll
    for (int s = 0; s <= t; s += 4) {
      float four[4];
      load_four(&T[t][s], four);
#pragma unroll
      for (int u = 0; u < 4; ++u)
        if (s + u <= t) sum = fmaf(four[u], x[s + u], sum);
    }
    y[t] = sum;
  }
}

template <int kKeys>
__global__ void __launch_bounds__(2 * kKeys)
    prepare_chunk(const DiagonalInputs p, int64_t chunks, unsigned char* work, bool backward,
                  bool wide) {
  using At = Work<kKeys>;
  using Shape = Chunk<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  Shape& chunk = *reinterpret_cast<Shape*>(memory);
  const Place at(p, chunks);
  chunk.load(p, at.b, at.h, at.first, wide);
  chunk.fill();
  unsigned char* const to = work + int64_t(blockIdx.x) * (backward ? At::kBackward : At::kForward);
  const int key = threadIdx.x % kKeys;
  float x[kTokens], y[kTokens], z[kTokens];
  if (threadIdx.x < kKeys) {
#pragma unroll
    for (int t = 0; t < kTokens; ++t) x[t] = chunk.kk[t][key] * __expf(chunk.sum[t][key]);
    times_lower(chunk.pairs[Shape::kUw], x, y);
    times_lower(chunk.pairs[Shape::kRw], y, z);
    store_tokens<kKeys>(to + At::kKp, key, y);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) z[t] = chunk.r[t][key] * __expf(chunk.sum[t + 1][key]) - z[t];
    store_tokens<kKeys>(to + At::kQt, key, z);
    reinterpret_cast<float*>(to + At::kDecay)[key] = __expf(chunk.sum[kTokens][key]);
    return;
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    x[t] = chunk.decay(t + 1, kTokens, key);
    y[t] = x[t] * chunk.w[t][key], z[t] = x[t] * chunk.k[t][key];
  }
  store_tokens<kKeys>(to + At::kWe, key, y);
  if (backward) {  // rows of T, Ark, Arw and Auk, which are here as rows already
    if (key >= 4 * kTokens) return;
    const int kind = key / kTokens, t = key % kTokens;
    const auto& from = chunk.pairs[kind == 0 ? Shape::kUw : kind - 1];
#pragma unroll
    for (int s = 0; s < kTokens; ++s) x[s] = from[t][s];
    store_tokens<kTokens>(to + At::kFourPairs + kind * At::kPairs, t, x);
    return;
  }
  store_tokens<kKeys>(to + At::kKe, key, z);
  if (key >= kTokens) return;
#pragma unroll
  for (int t = 0; t < kTokens; ++t) x[t] = chunk.pairs[Shape::kUk][t][key];
  times_lower(chunk.pairs[Shape::kUw], x, y);
  times_lower(chunk.pairs[Shape::kRw], y, z);
  store_tokens<kTokens>(to + At::kBp, key, y);
#pragma unroll
  for (int t = 0; t < kTokens; ++t) z[t] = chunk.pairs[Shape::kRk][t][key] - z[t];
  store_tokens<kTokens>(to + At::kAt, key, z);
}

}  // namespace

void prepare(const DiagonalInputs& p, bool backward, void* work, void* stream) {
  const int64_t chunks = chunks_of(p);
  with_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    constexpr size_t kBytes = sizeof(Chunk<kKeys>);
    allow_shared(prepare_chunk<kKeys>, kBytes);
    prepare_chunk<kKeys>
        <<<blocks_of(p.B * p.H * chunks), 2 * kKeys, kBytes, static_cast<cudaStream_t>(stream)>>>(
            p, chunks, static_cast<unsigned char*>(work), backward, keys_lie_on_packs(p));
  });
  check_launch("rwkv7");
}

}  // namespace lrnn::kernels::cuda::rwkv7

namespace lrnn::kernels::cuda {

int64_t rwkv7_chunk_work(const DiagonalInputs& p, bool backward) {
  int64_t bytes = 0;
  rwkv7::with_keys(p, [&](auto keys) {
    using At = rwkv7::Work<decltype(keys)::value>;
    bytes = p.B * p.H * rwkv7::chunks_of(p) * (backward ? At::kBackward : At::kForward);
  });
  return bytes;
}

}  // namespace lrnn::kernels::cuda
