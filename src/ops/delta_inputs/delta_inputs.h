#pragma once
#include <torch/types.h>

#include <string>
#include <vector>

#include "ops/linears/weight.h"

// What a delta rule reads. q, k and v, each W x, go through a short convolution of their own, an
// activation, and q and k through a norm, head by head:
//
//   q = norm(act(conv(q))),  k = norm(act(conv(k))),  v = act(conv(v))
//
// act   silu, relu, elu (that is elu + 1) or none
// norm  l2: y / sqrt(sum of y^2 + 1e-6);  sum: y / sum of y;  none
//
// On a GPU, with SiLU, all three are one convolution and one norm, and where they can be one pass,
// that (unit_conv).
namespace lrnn::ops {

struct DeltaInputs {
  torch::Tensor qkv = {};  // [B,T,(1 + N) H K + N H V]: q, k and v side by side; or undefined, and
  // [..,H*K], [..,N*H*K], [..,N*H*V] each by itself; without a convolution divided into heads
  // already, as results are.
  torch::Tensor q = {}, k = {}, v = {};
  // Defined: q is convolved at the ends of S sequences alone. It holds the last W rows of each,
  // [S,W,H*K], with zeros before a shorter one; lengths int64 [S], or [1] if all have the same.
  torch::Tensor lengths = {};
  WeightStack conv = {};                   // of q, k and v, [C,1,W] each; or no parts
  std::vector<torch::Tensor> states = {};  // of the convolutions, [S,C,W] each, or undefined
  int64_t N = 1, H = 1, K = 1, V = 1;
  std::string qk_activation = "silu", v_activation = "silu", qk_norm = "l2";
  torch::Tensor cu_seqlens = {};  // int64 [S+1]: B = 1 and T holds S sequences end to end
};

struct DeltaInputsResult {
  torch::Tensor q, k, v;              // [..,H,K] (or [1,S,H,K]), [..,N,H,K], [..,N,H,V]
  std::vector<torch::Tensor> states;  // the new ones
};

DeltaInputsResult delta_inputs(const DeltaInputs& in);
// The definition: the lines above in plain torch, differentiated by torch itself.
DeltaInputsResult delta_inputs_definition(const DeltaInputs& in);

}  // namespace lrnn::ops
