#pragma once
#include "kernels/cuda/delta_product/chunk.cuh"
#include "kernels/cuda/delta_product/chunk_channels.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/operand.cuh"

// What the kernels of chunk_channels.h share. Queries stand at the micro-step after which they
// read, a row of zeros where no token ends.
namespace lrnn::kernels::cuda::channels {

// exp() of this is nothing beside a float32, and sums of 64 of it keep the digits of the others.
constexpr float kLeastLog = -40;

// The matrices of one chunk of one head in memory, bytes: beta [64] and a_C [KT] in float32, then
// bfloat16, the parts of a matrix after one another.
template <int KT, bool kSplit> struct Record {
  static constexpr int kParts = kSplit ? 2 : 1, kTParts = kSplit ? 3 : 1;
  using Keys = Operand<kChunk, KT, kParts>;  // in shared memory
  using Pairs = Operand<kChunk, kChunk, kParts>;
  using Inverse = Operand<kChunk, kChunk, kTParts>;
  static constexpr int kKeys = kChunk * KT * 2, kPairs = kChunk * kChunk * 2;  // bytes of a part
  static constexpr int kBeta = 0, kDecay = kBeta + 4 * kChunk, kKg = kDecay + 4 * KT,
                       kQg = kKg + kParts * kKeys, kKr = kQg + kParts * kKeys,
                       kT = kKr + kParts * kKeys, kP = kT + kTParts * kPairs,
                       kBytes = kP + kParts * kPairs;
};

// A matrix of such a record to shared memory.
template <int kColumns, int kParts>
__device__ __forceinline__ void fetch(const Operand<kChunk, kColumns, kParts>& to,
                                      const unsigned char* from) {
  using To = Operand<kChunk, kColumns, kParts>;
  constexpr int kPieces = kColumns / 8;
  const uint32_t base = shared_address(to.base);
  for (int at = threadIdx.x; at < kParts * kChunk * kPieces; at += blockDim.x)
    copy_async(base + at / kPieces * To::kStride + at % kPieces * 16, from + at * 16);
}
__device__ __forceinline__ void fetch_floats(float* to, const unsigned char* from, int count) {
  for (int at = threadIdx.x; at < count / 4; at += blockDim.x)
    copy_async(shared_address(to) + at * 16, from + at * 16);
}
// Rows of queries, or what belongs to them, at the micro-steps after which they read. `from`: the
// first one's row.
__device__ __forceinline__ void fetch_queries(const Matrix& to, const uint16_t* from, int64_t step,
                                              const Queries& queries, int columns) {
  const int pieces = (to.row - row_bytes(0)) / 16;
  for (int at = threadIdx.x; at < kChunk * pieces; at += blockDim.x) {
    const int i = at / pieces, piece = at % pieces, r = queries.row(i);
    const bool ok = r >= 0 && piece * 8 < columns;
    copy_async(to.at(i, piece * 8), ok ? from + r * step + piece * 8 : from, ok);
  }
}

// Sums of the logarithms of gates before each micro-step; the last row is the chunk's.
template <int KT> using Sums = float[kChunk + 1][KT + 8];

// By the first KT threads, a channel each.
template <int KT>
__device__ __forceinline__ void fill_sums(Sums<KT>& sum, const DeltaProductInputs& p, Span span,
                                          const Slot& at, int64_t h) {
  const int channel = threadIdx.x;
  if (channel >= KT) return;
  const int N = int(p.N);
  const int64_t token = uint32_t(at.first) / uint32_t(N);
  int step = int(at.first - token * N);  // within its token
  const float* next = static_cast<const float*>(p.log_gate) +
                      ((span.b * p.T + span.t0 + token) * p.H + h) * p.K + channel;
  if (step > 0) next += p.H * p.K;
  constexpr int kAtOnce = 16;
  float total = 0;
  sum[0][channel] = 0;
  for (int first = 0; first < kChunk; first += kAtOnce) {
    float x[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool begins = step == 0 && first + i < at.count;
      x[i] = begins && channel < p.K ? *next : 0.f;
      if (begins) next += p.H * p.K;
      step = step + 1 < N ? step + 1 : 0;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      total += x[i] < kLeastLog ? kLeastLog : x[i];
      sum[first + i + 1][channel] = total;
    }
  }
}

// Two neighbouring channels of a row.
__device__ __forceinline__ float2 pair_at(const float* row) {
  return *reinterpret_cast<const float2*>(row);
}
// exp(a - b).
__device__ __forceinline__ float2 decay(float2 a, float2 b) {
  return make_float2(fast_exp(a.x - b.x), fast_exp(a.y - b.y));
}

// Calls f(integral_constant KT, bool_constant split).
template <class F> void with_record(const DeltaProductInputs& p, bool split, F&& f) {
  const auto keys = [&]<int KT>() {
    split ? f.template operator()<KT, true>() : f.template operator()<KT, false>();
  };
  p.K <= 64 ? keys.template operator()<64>() : keys.template operator()<128>();
}

}  // namespace lrnn::kernels::cuda::channels
