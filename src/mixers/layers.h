#pragma once
#include "ops/linears.h"
#include "ops/torch.h"

// The small modules that mixers and models are made of. Their weights are unset until somebody
// initialises or loads them: building a large model to count or to load it costs nothing.
namespace lrnn::mixers {

using torch::Tensor;

// y = x W^T, or x W^T + bias where a layer has one.
class Linear : public torch::nn::Module {
 public:
  Linear(int64_t in, int64_t out, bool with_bias = false) {
    weight = register_parameter("weight", torch::empty({out, in}));
    if (with_bias) bias = register_parameter("bias", torch::empty(out));
  }
  Tensor forward(const Tensor& x) const {
    const Tensor y = ops::linear(x, weight);
    return bias.defined() ? y + bias.to(y.scalar_type()) : y;
  }
  Tensor weight;  // [out,in]
  Tensor bias;    // [out], or undefined
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
  ShortConv(int64_t channels, int64_t kernel, bool with_bias = false) {
    weight = register_parameter("weight", torch::empty({channels, 1, kernel}));
    if (with_bias) bias = register_parameter("bias", torch::empty(channels));
  }
  // x [B,T,C] -> y; reads and replaces `state` [B,C,W] (undefined: the beginning of time).
  Tensor forward(const Tensor& x, Tensor& state, bool silu, const Tensor& cu_seqlens = {}) const;
  // y [S,1,C] at the last of the inputs `window` [S,W,C]. The state is then window^T.
  Tensor last(const Tensor& window, Tensor& state, bool silu) const;
  Tensor weight;  // [C,1,W]
  Tensor bias;    // [C], or undefined
};

}  // namespace lrnn::mixers
