#pragma once
#include <torch/types.h>

#include <vector>

// What a delta rule reads: the short convolution (with SiLU) of q, k and v side by side, where the
// channels of q and k then leave as units, a head at a time:
//
//   y = short_conv(x),   u = y / sqrt(sum over the head of y^2 + eps)
//
// One pass over the channels in either direction; the gradients of q, k and v need no joining.
namespace lrnn::ops {

struct UnitConv {
  torch::Tensor x;             // [B,T,D]
  torch::Tensor weight;        // [D,1,W]
  torch::Tensor state;         // [B,D,W] newest in the last column, or undefined; no gradient
  std::vector<int64_t> sizes;  // of the pieces of y; they add up to D
  int64_t units = 0;           // the first so many channels, a multiple of `group`
  int64_t group = 1;           // channels in a unit
  double eps = 0;
};

struct UnitConvResult {
  std::vector<torch::Tensor> y;  // [B,T,sizes[i]]; from the kernel each is contiguous
  torch::Tensor state;           // [B,D,W]
};

UnitConvResult unit_conv(const UnitConv& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
UnitConvResult unit_conv_definition(const UnitConv& in);

}  // namespace lrnn::ops
