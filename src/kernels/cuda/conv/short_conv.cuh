#pragma once
#include "kernels/cuda/conv/short_conv.h"
#include "kernels/cuda/tile/common.cuh"

// What the kernels of the short convolution share: where sequences begin and end.
namespace lrnn::kernels::cuda {

struct Sequence {
  int64_t s, begin, end;
};

__device__ __forceinline__ Sequence bounds(const ShortConv& p, int64_t s) {
  if (!p.cu_seqlens) return {s, s * p.T, (s + 1) * p.T};
  const int64_t begin = min(max(p.cu_seqlens[s], int64_t(0)), p.rows);
  return {s, begin, min(max(p.cu_seqlens[s + 1], begin), p.rows)};
}

__device__ inline Sequence sequence_of(const ShortConv& p, int64_t row) {
  if (!p.cu_seqlens)  // a division of 64 bits takes longer than the rest of a token
    return bounds(p, p.rows >> 31 ? row / p.T : uint32_t(row) / uint32_t(p.T));
  int64_t s = 0, end = p.S;
  while (end - s > 1) {
    const int64_t middle = (s + end) / 2;
    (p.cu_seqlens[middle] <= row ? s : end) = middle;
  }
  return bounds(p, s);
}

// Where window_serves().
void window_forward(const ShortConv& p, const ConvPieces& y, void* next, cudaStream_t stream);
void window_backward(const ShortConv& p, const ShortConvGradient& g, cudaStream_t stream);
ConvParts window_parts(const ShortConv& p);

}  // namespace lrnn::kernels::cuda
