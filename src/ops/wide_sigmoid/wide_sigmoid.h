#pragma once
#include <torch/types.h>

namespace lrnn::ops {

// scale * sigmoid(x) as torch computes it, the sigmoid rounded to the type of x, but given in
// float32 for bfloat16 (the recurrences take their step sizes so); one node of the graph.
//
// The rounding matters: from a logit of 6.25 on the sigmoid is 1 in bfloat16, and a step size of
// exactly 2 is a reflection, which forgets nothing. In float32 it would only come close.
torch::Tensor wide_sigmoid(const torch::Tensor& x, double scale);

}  // namespace lrnn::ops
