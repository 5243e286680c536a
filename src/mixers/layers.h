#pragma once
#include "ops/linears.h"
#include "ops/torch.h"

// The small modules that mixers and models are made of. Their weights are unset until somebody
// initialises or loads them: building a large model to count or to load it costs nothing.
namespace lrnn::mixers {

using torch::Tensor;

// y = x W^T. No bias: none of these models has one.
class Linear : public torch::nn::Module {
 public:
  Linear(int64_t in, int64_t out) {
    weight = register_parameter("weight", torch::empty({out, in}));
  }
  Tensor forward(const Tensor& x) const { return ops::linear(x, weight); }
  Tensor weight;  // [out,in]
};

// scale * sigmoid(x), as one node of the graph.
Tensor scaled_sigmoid(const Tensor& x, double scale);

// Holds the gain of a root-mean-square norm.
class RmsNorm : public torch::nn::Module {
 public:
  RmsNorm(int64_t size, double eps) : eps_(eps) {
    weight = register_parameter("weight", torch::empty(size));
  }
  Tensor forward(const Tensor& x) const;
  Tensor weight;  // [size]

 private:
  double eps_;
};

// Holds the kernel of a short convolution.
class ShortConv : public torch::nn::Module {
 public:
  ShortConv(int64_t channels, int64_t kernel) {
    weight = register_parameter("weight", torch::empty({channels, 1, kernel}));
  }
  // x [B,T,C] -> y; reads and replaces `state` [B,C,W] (undefined: the beginning of time).
  Tensor forward(const Tensor& x, Tensor& state, bool silu, const Tensor& cu_seqlens = {}) const;
  // y [S,1,C] at the last of the inputs `window` [S,W,C]. The state is then window^T.
  Tensor last(const Tensor& window, Tensor& state, bool silu) const;
  Tensor weight;  // [C,1,W]
};

}  // namespace lrnn::mixers
