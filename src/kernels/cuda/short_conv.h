#pragma once
#include <cstdint>

#include "kernels/delta_product.h"

// The short causal convolution on the GPU; ops/short_conv.h says what it computes. "wide" is double
// for kFloat64 and float otherwise.
namespace lrnn::kernels::cuda {

struct ShortConv {
  Type type = Type::kFloat32;                    // of x, y, state and their gradients
  int64_t rows = 0, T = 0, D = 0, W = 0, S = 0;  // rows of x in all; T per sequence when not packed
  const int64_t* cu_seqlens = nullptr;           // [S+1], or null
  bool silu = true;
  const void* x = nullptr;  // [rows, D], rows `stride` elements apart
  int64_t stride = 0;
  Type weight_type = Type::kFloat32;
  const void* weight = nullptr;  // [D,W]
  const void* bias = nullptr;    // wide [D] or null
  const void* state = nullptr;   // [S,W,D] or null
};

struct ShortConvGradient {
  const void* dy = nullptr;  // [rows, D], rows `stride` elements apart
  int64_t stride = 0;
  const void* dnext = nullptr;  // [S,W,D] or null
  void* dpre = nullptr;         // wide [rows, D]: room for the gradient before the activation
  void* dx = nullptr;           // [rows, D]
  void* dstate = nullptr;       // [S,W,D] or null
  void* partial = nullptr;      // wide [ranges, W, D], with a bias W+1: sums for them
  int64_t range = 1;            // tokens in a range
};

// Tokens summed into one partial of the weights' gradient: short enough that all of the GPU works.
inline int64_t conv_range(int64_t rows) { return rows < 8192 ? 8 : rows < 65536 ? 32 : 128; }

void short_conv_forward(const ShortConv& p, void* y, void* next, void* stream);
void short_conv_backward(const ShortConv& p, const ShortConvGradient& g, void* stream);

}  // namespace lrnn::kernels::cuda
