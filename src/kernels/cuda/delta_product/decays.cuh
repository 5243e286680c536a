#pragma once
#include "kernels/cuda/delta_product/chunk.cuh"

// The decays within a chunk, in shared memory: A_ij is the product of the gates after micro-step j
// up to i. Products, not differences of sums: a gate may be zero. Within blocks of 16 micro-steps
// all of them are there; from block to block it is what is left of the block of j, the whole blocks
// between, and as much of the block of i as has begun.
namespace lrnn::kernels::cuda {

struct Decays {
  static constexpr int kBlock = 16, kBlocks = kChunk / kBlock;
  float within[kChunk][kBlock + 2];  // j modulo 16; only up to i
  float left[kChunk], begun[kChunk];

  // By the first 128 threads of a block, which then meets. `column`: what column j is multiplied
  // with, if anything.
  __device__ void fill(const float* gate, const float* column = nullptr) {
    const int i = threadIdx.x % kChunk, first = i / kBlock * kBlock;
    if (threadIdx.x < kChunk) {
      float a = column ? column[i] : 1.f;
#pragma unroll
      for (int m = 0; m < kBlock; ++m) {
        if (first + m > i) a *= gate[first + m];
        if (first + m >= i) within[first + m][i % kBlock] = a;
      }
      left[i] = a;
    } else if (threadIdx.x < 2 * kChunk) {
      float a = 1;
#pragma unroll
      for (int m = 0; m < kBlock; ++m)
        if (first + m <= i) a *= gate[first + m];
      begun[i] = a;
    }
  }
  __device__ float whole(int block) const { return begun[block * kBlock + kBlock - 1]; }
  __device__ float at(int i, int j) const {  // j <= i
    const int to = i / kBlock, from = j / kBlock;
    if (to == from) return within[i][j % kBlock];
    float a = begun[i] * left[j];
#pragma unroll
    for (int b = 1; b < kBlocks - 1; ++b)
      if (from < b && b < to) a *= whole(b);
    return a;
  }
  __device__ float before(int i) const {  // all gates up to i
    float a = begun[i];
#pragma unroll
    for (int b = 0; b < kBlocks - 1; ++b)
      if (b < i / kBlock) a *= whole(b);
    return a;
  }
  __device__ float after(int i) const {  // all gates after i
    float a = left[i];
#pragma unroll
    for (int b = 1; b < kBlocks; ++b)
      if (b > i / kBlock) a *= whole(b);
    return a;
  }

  // Row i times `by`, the columns 8t+2c, +1 of a C tile at a time.
  class Row {
   public:
    Row() = default;
    __device__ Row(const Decays& decays, int i, float by)
        : own_(decays.within[i] + threadIdx.x % 4 * 2),
          left_(decays.left + threadIdx.x % 4 * 2),
          block_(i / kBlock) {
      float earlier = by * decays.begun[i];
#pragma unroll
      for (int b = kBlocks - 1; b >= 0; --b) {
        by_[b] = b < block_ ? earlier : by;
        if (b < block_) earlier *= decays.whole(b);
      }
    }
    __device__ float2 at(int t) const {
      const float2 a =
          *reinterpret_cast<const float2*>(t / 2 < block_ ? left_ + t * 8 : own_ + t % 2 * 8);
      return make_float2(by_[t / 2] * a.x, by_[t / 2] * a.y);
    }

   private:
    const float *own_, *left_;
    int block_;
    float by_[kBlocks];
  };
};

}  // namespace lrnn::kernels::cuda
