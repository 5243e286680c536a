#pragma once
#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/tile/copy.cuh"
#include "kernels/cuda/tile/fragment.cuh"

// Matrices in shared memory that tensor cores multiply, a plane of rows for every part of a number
// (fragment.cuh).
namespace lrnn::kernels::cuda {

template <int kRows, int kColumns, int kParts> struct Operand {
  static constexpr int kStride = row_bytes(kColumns), kPlane = kRows * kStride,
                       kBytes = kParts * kPlane;
  unsigned char* base;

  __device__ __forceinline__ explicit Operand(unsigned char* base_) : base(base_) {}

  // Two neighbouring elements; the column is even.
  __device__ __forceinline__ void put(int row, int column, float low, float high) const {
    uint32_t part[kParts];
    split(low, high, part);
    uint32_t* const to = reinterpret_cast<uint32_t*>(base + row * kStride + 2 * column);
#pragma unroll
    for (int i = 0; i < kParts; ++i) to[i * (kPlane / 4)] = part[i];
  }
  // Eight of them; the column is a multiple of eight.
  __device__ __forceinline__ void put_eight(int row, int column, const float (&x)[8]) const {
    uint32_t part[4][kParts];
#pragma unroll
    for (int j = 0; j < 4; ++j) split(x[2 * j], x[2 * j + 1], part[j]);
    uint4* const to = reinterpret_cast<uint4*>(base + row * kStride + 2 * column);
#pragma unroll
    for (int i = 0; i < kParts; ++i)
      to[i * (kPlane / 16)] = make_uint4(part[0][i], part[1][i], part[2][i], part[3][i]);
  }
  __device__ __forceinline__ float2 get(int row, int column) const {
    const uint32_t* const from =
        reinterpret_cast<const uint32_t*>(base + row * kStride + 2 * column);
    float2 x = make_float2(0, 0);
#pragma unroll
    for (int i = kParts - 1; i >= 0; --i)
      x.x += low_of(from[i * (kPlane / 4)]), x.y += high_of(from[i * (kPlane / 4)]);
    return x;
  }

  // A(m,k) = M[m][k] and M[k][m], B(k,n) = M[n][k] and M[k][n]; 16 x 16 from the corner given.
  __device__ __forceinline__ Fragment<kParts> a_rows(int m, int k) const {
    return fetch<false>(m, k, lane_transposed(kStride));
  }
  __device__ __forceinline__ Fragment<kParts> a_columns(int m, int k) const {
    return fetch<true>(k, m, lane_direct(kStride));
  }
  __device__ __forceinline__ Fragment<kParts> b_rows(int k, int n) const {
    return fetch<false>(n, k, lane_direct(kStride));
  }
  __device__ __forceinline__ Fragment<kParts> b_columns(int k, int n) const {
    return fetch<true>(k, n, lane_transposed(kStride));
  }

 private:
  template <bool kTransposed>
  __device__ __forceinline__ Fragment<kParts> fetch(int row, int column, uint32_t lane) const {
    Fragment<kParts> f;
    const uint32_t at = shared_address(base) + row * kStride + 2 * column + lane;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      if constexpr (kTransposed)
        ldmatrix_transposed(f.part[i], at + i * kPlane);
      else
        ldmatrix(f.part[i], at + i * kPlane);
    }
    return f;
  }
};

}  // namespace lrnn::kernels::cuda
