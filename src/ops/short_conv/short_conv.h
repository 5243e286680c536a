#pragma once
#include <tuple>
#include <vector>

#include "ops/field.h"
#include "ops/inner.h"

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

// What a delta rule reads: the short convolution (with SiLU) of q, k and v side by side, where the
// channels of q and k then leave as units, a head at a time:
//
//   y = short_conv(x),   u = y / sqrt(sum over the head of y^2 + eps)
//
// One pass over the channels in either direction; the gradients of q, k and v need no joining.
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

// For back ends alone: the inner ops of unit_conv in steps of other ops, which those without a
// kernel for it take.
namespace lrnn::ops {

// The convolution in it.
ShortConv conv_of(const torch::Tensor& x, const torch::Tensor& weight, const MaybeTensor& state);

// y in pieces [B,T,..] and the state [B,D,W].
std::tuple<std::vector<torch::Tensor>, torch::Tensor> unit_conv_in_steps(
    const torch::Tensor& x, const torch::Tensor& weight, const MaybeTensor& state,
    at::IntArrayRef sizes, int64_t units, int64_t group, double eps);
// dx and dweight; dy in pieces [B,T,..].
std::tuple<torch::Tensor, torch::Tensor> unit_conv_backward_in_steps(
    at::TensorList dy, const MaybeTensor& dnext, const torch::Tensor& x,
    const torch::Tensor& weight, const MaybeTensor& state, int64_t units, int64_t group,
    double eps);

// Throws unless the first `units` channels of x are whole groups, and all of them the pieces.
void check_units(const torch::Tensor& x, at::IntArrayRef sizes, int64_t units, int64_t group);
// Throws unless the pieces are the gradient of a y like x.
void check_pieces(at::TensorList dy, const torch::Tensor& x);

}  // namespace lrnn::ops
