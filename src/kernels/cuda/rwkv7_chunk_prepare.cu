#include "kernels/cuda/rwkv7_chunk.cuh"

// The matrices of all chunks, a block each.
namespace lrnn::kernels::cuda::rwkv7 {
namespace {

// Neighbouring threads have neighbouring columns of a row of two parts: the even one stores the
// first part of both, the odd one the second.
template <int kWidth>
__device__ __forceinline__ void store_column(unsigned char* to, int row, int column, float x) {
  const uint32_t first = pack(x, 0.f), second = pack(x - low_of(first), 0.f);
  const bool odd = column % 2;
  const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
  const uint32_t both = odd ? other | second << 16 : first | other << 16;
  reinterpret_cast<uint32_t*>(to)[(int(odd) * kTokens + row) * (kWidth / 2) + column / 2] = both;
}

// y = T x, T lower triangular with or without its diagonal; row by row, so that y may be x
// from the last row on.
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
  unsigned char* const to = work + int64_t(blockIdx.x) * (backward ? At::kBack : At::kAll);
  const int key = threadIdx.x % kKeys;
  float x[kTokens], y[kTokens], z[kTokens];
  if (threadIdx.x < kKeys) {
#pragma unroll
    for (int t = 0; t < kTokens; ++t) x[t] = chunk.kk[t][key] * __expf(chunk.sum[t][key]);
    times_lower(chunk.pairs[Shape::kUw], x, y);
    times_lower(chunk.pairs[Shape::kRw], y, z);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      store_column<kKeys>(to + At::kKp, t, key, y[t]);
      store_column<kKeys>(to + At::kQt, t, key,
                          chunk.r[t][key] * __expf(chunk.sum[t + 1][key]) - z[t]);
    }
    reinterpret_cast<float*>(to + At::kDecay)[key] = __expf(chunk.sum[kTokens][key]);
    return;
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float decay = chunk.decay(t + 1, kTokens, key);
    store_column<kKeys>(to + At::kWe, t, key, decay * chunk.w[t][key]);
    if (!backward) store_column<kKeys>(to + At::kKe, t, key, decay * chunk.k[t][key]);
  }
  if (backward || key >= 32) return;  // a warp's work, half of it twice
  const int column = key % kTokens;
#pragma unroll
  for (int t = 0; t < kTokens; ++t) x[t] = chunk.pairs[Shape::kUk][t][column];
  times_lower(chunk.pairs[Shape::kUw], x, y);
  times_lower(chunk.pairs[Shape::kRw], y, z);
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    store_column<kTokens>(to + At::kBp, t, column, y[t]);
    store_column<kTokens>(to + At::kAt, t, column, chunk.pairs[Shape::kRk][t][column] - z[t]);
  }
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
    bytes = p.B * p.H * rwkv7::chunks_of(p) * (backward ? At::kBack : At::kAll);
  });
  return bytes;
}

}  // namespace lrnn::kernels::cuda
