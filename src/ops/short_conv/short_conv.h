#pragma once
#include <torch/types.h>

// Short causal depthwise convolution with an optional SiLU, the other recurrent piece of the layer:
//
//   y_t[d] = act( sum_{w=0}^{W-1} weight[d,w] x_{t-(W-1)+w}[d] + bias[d] )
//
// The state is the last W inputs (as fla's cache), zeros at the beginning of time.
namespace lrnn::ops {

struct ShortConv {
  torch::Tensor x;       // [B,T,D]
  torch::Tensor weight;  // [D,1,W]
  torch::Tensor bias;    // [D], or undefined
  torch::Tensor state;   // [B,D,W] newest in the last column, or undefined for zeros
  bool silu = true;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences; the state is [S,D,W]
};

struct ShortConvResult {
  torch::Tensor y;      // [B,T,D]
  torch::Tensor state;  // [B,D,W]
};

ShortConvResult short_conv(const ShortConv& in);
ShortConvResult short_conv_definition(const ShortConv& in);

}  // namespace lrnn::ops
