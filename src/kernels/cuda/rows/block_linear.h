#pragma once
#include <cstdint>

#include "kernels/types.h"

// A small matrix for every block of the channels, free of torch: ops/block_linear/block_linear.h.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostBlockSide = 8;

// `weight` [blocks,out,in] has the type of the rows; everything is contiguous.
struct BlockLinear {
  Type type = Type::kFloat32;
  int64_t rows = 0, blocks = 0, in = 0, out = 0;
};

// y [rows,blocks,out] = W x, or with `transposed` y [rows,blocks,in] = W^T x.
void block_product(const BlockLinear& p, const void* weight, const void* x, bool transposed,
                   void* y, void* stream);

// Wide sums of dy x^T over runs of rows: [block_parts, blocks, out, in], to be added up.
int64_t block_parts(const BlockLinear& p);
void block_gradient(const BlockLinear& p, const void* dy, const void* x, void* partial,
                    void* stream);

}  // namespace lrnn::kernels::cuda
