#pragma once
#include <cstdint>

#include "kernels/delta_product.h"

// The short causal convolution on the GPU; ops/short_conv/short_conv.h says what it computes.
// "wide" is double for kFloat64 and float otherwise.
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
  // The first `units` channels leave as units: `group` at a time they are divided by
  // sqrt(the sum of their squares + eps). There is no bias then.
  int64_t units = 0, group = 1;
  float eps = 0;
};

// Channels from `begin` on, to those of the next piece: [rows, ..], rows `stride` elements apart.
struct ConvPiece {
  void* data = nullptr;
  int64_t stride = 0, begin = 0;
};
struct ConvPieces {  // q, k and v, or all in one; those without data are not there
  static constexpr int kMost = 3;
  ConvPiece of[kMost];
};

struct ShortConvGradient {
  ConvPieces dy;
  const void* dnext = nullptr;  // [S,W,D] or null
  void* dpre = nullptr;         // wide [rows, D]: workspace for the gradient before the activation,
                                // where window_serves() says no
  void* dx = nullptr;           // [rows, D]
  void* dstate = nullptr;       // [S,W,D] or null
  void* partial = nullptr;      // wide [count, W, D], with a bias W+1: sums for them
  int64_t range = 1;            // of conv_parts()
};

// Whether the kernels for up to four weights do it. Only they know units and pieces.
bool window_serves(const ShortConv& p, const ConvPieces& y);
bool window_serves(const ShortConv& p, const ShortConvGradient& g);

// The sums for the weights' gradient: how many there are, and tokens in a range of them, few enough
// that all of the GPU works.
struct ConvParts {
  int64_t range = 1, count = 0;
};
ConvParts conv_parts(const ShortConv& p, const ShortConvGradient& g);

void short_conv_forward(const ShortConv& p, const ConvPieces& y, void* next, void* stream);
void short_conv_backward(const ShortConv& p, const ShortConvGradient& g, void* stream);

}  // namespace lrnn::kernels::cuda
