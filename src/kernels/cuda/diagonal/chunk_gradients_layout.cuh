#pragma once
#include "kernels/cuda/diagonal/chunk_pairs.cuh"

// Where the gradients of a chunk of gated linear attention (chunk_gradients.cuh) have what in
// shared memory.
namespace lrnn::kernels::cuda::gla {

// Shared memory, bytes: what is needed at the same time.
template <int kKeys> struct Layout {
  using Shape = GlaShape<kKeys>;
  static constexpr int kDaStride = kGlaTokens + 4, kNear = 32 * 20 * 4;
  static constexpr int most(int a, int b) { return a > b ? a : b; }
  // Where d_o and G are, results pass from warps to threads, before both come once more for dv;
  // where S is, x of the levels between blocks, at last r k; where v is, A within 16 tokens, at
  // last dv; where dA was, A.
  static constexpr int d_o = 0, G = d_o + Shape::Values::kBytes, near = 0,
                       S = most(G + Shape::State::kBytes, Shape::kWarps*kNear), x = S,
                       v = S + most(Shape::State::kBytes, Shape::Keys::kBytes), pairs = v,
                       q = v + Shape::Values::kBytes, k = q + Shape::Rows16::kBytes,
                       log_decay = k + Shape::Rows16::kBytes,
                       dA = log_decay + int(sizeof(float)) * kGlaTokens * kKeys, A = dA,
                       tables = dA + most(int(sizeof(float)) * kGlaTokens * kDaStride,
                                          Shape::Pairs::kBytes),
                       bytes = tables + int(sizeof(float)) * 5 * kGlaBlocks * kKeys;
  static_assert(bytes <= gla_most_shared(kKeys));
};

// A key of 16 tokens, in shared memory.
template <int kKeys> struct Tokens {
  const unsigned char* first;
  __device__ __forceinline__ float at(int t) const {
    const auto bits =
        *reinterpret_cast<const uint16_t*>(first + t * GlaShape<kKeys>::Rows16::kStride);
    return __uint_as_float(uint32_t(bits) << 16);
  }
};

enum Table { kWhole, kThrough, kRead, kWritten, kHalf };

}  // namespace lrnn::kernels::cuda::gla
