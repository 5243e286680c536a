#pragma once
#include <torch/types.h>

namespace lrnn::ops {

// scale * sigmoid(x), computed and given in float32 for bfloat16 (the recurrences take their step
// sizes so); one node of the graph.
torch::Tensor wide_sigmoid(const torch::Tensor& x, double scale);

}  // namespace lrnn::ops
