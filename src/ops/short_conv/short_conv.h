#pragma once
#include "ops/field.h"

// Short causal depthwise convolution with an optional SiLU, the other recurrent piece of the layer:
//
//   y_t[d] = act( sum_{w=0}^{W-1} weight[d,w] x_{t-(W-1)+w}[d] + bias[d] )
//
// The state is the last W inputs (as fla's cache), zeros at the beginning of time. In memory it is
// [S,W,D]: the rows of a state are rows of x. A state that lies so is not copied.
namespace lrnn::ops {

struct ShortConvResult {
  torch::Tensor y;      // [B,T,D]
  torch::Tensor state;  // [B,D,W]

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.y, result("y", "BTD"));
    visit(out.state, result("state", "SDW").laid_out("SWD"));
  }
};

struct ShortConv {
  torch::Tensor x;       // [B,T,D]
  torch::Tensor weight;  // [D,1,W]
  torch::Tensor bias;    // [D], or undefined
  torch::Tensor state;   // [B,D,W] newest in the last column, or undefined for zeros
  bool silu = true;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences; the state is [S,D,W]

  static constexpr const char* kName = "short_conv";
  using Result = ShortConvResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.x, main_input("x", "BTD"));
    visit(in.weight, needed("weight", "D1W", Kind::kIoOrWide));
    visit(in.bias, optional("bias", "D", Kind::kIoOrWide));
    visit(in.state, optional("state", "SDW", Kind::kCast).laid_out("SWD"));
    visit(in.silu, "silu");
    visit(in.cu_seqlens, sequence_bounds(/*by_name=*/false));
  }
};

ShortConvResult short_conv(const ShortConv& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
ShortConvResult short_conv_definition(const ShortConv& in);

// y at the last row of each of S sequences alone, [1,S,D], from the last W rows of each: in.x is
// [S,W,D], with zeros before a sequence that is shorter (lengths: int64 [S], or [1] where all are
// equally long), and in.cu_seqlens undefined.
ShortConvResult short_conv_ends(const ShortConv& in, const torch::Tensor& lengths);

}  // namespace lrnn::ops
