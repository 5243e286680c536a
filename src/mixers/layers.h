#pragma once
#include "ops/linears/linears.h"
#include "ops/torch.h"

// The small modules that mixers and models are made of. Their weights are unset until somebody
// initialises or loads them: building a large model to count or to load it costs nothing.
namespace lrnn::mixers {

using torch::Tensor;
struct Context;
struct Rows;

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

// A matrix per block of the channels: y_b = W_b x_b.
class BlockLinear : public torch::nn::Module {
 public:
  BlockLinear(int64_t blocks, int64_t in, int64_t out) {
    weight = register_parameter("weight", torch::empty({blocks, out, in}));
  }
  Tensor forward(const Tensor& x) const { return apply(x, weight); }
  // x [..,blocks*in] -> [..,blocks,out]
  static Tensor apply(const Tensor& x, const Tensor& weight);
  Tensor weight;  // [blocks,out,in]
};

// Over the last dimension, with a gain.
class Norm : public torch::nn::Module {
 public:
  Norm(int64_t size, double eps) : eps_(eps) {
    weight = register_parameter("weight", torch::empty(size));
  }
  virtual Tensor forward(const Tensor& x) const = 0;
  // {x + y, the norm of that}; an undefined y is zero. With `for_products` nobody but matrix
  // products reads the norm, and under autocast it may have their type.
  virtual std::pair<Tensor, Tensor> after(const Tensor& x, const Tensor& y,
                                          bool /*for_products*/) const {
    const Tensor s = y.defined() ? x + y : x;
    return {s, forward(s)};
  }
  virtual double initial() const = 0;  // of the weight: a gain of 1
  Tensor weight;                       // [size]

 protected:
  double eps_;
};

class RmsNorm final : public Norm {
 public:
  using Norm::Norm;
  Tensor forward(const Tensor& x) const override;
  std::pair<Tensor, Tensor> after(const Tensor& x, const Tensor& y,
                                  bool for_products) const override;
  double initial() const override { return 1; }
};

// xLSTM's: no bias, and the gain is 1 + weight.
class LayerNorm final : public Norm {
 public:
  using Norm::Norm;
  Tensor forward(const Tensor& x) const override;
  double initial() const override { return 0; }
};

// The same for each head by itself: x [..,H,D] with a weight of H*D.
class HeadNorm final : public Norm {
 public:
  using Norm::Norm;
  Tensor forward(const Tensor& x) const override;  // -> [..,H*D]
  double initial() const override { return 0; }
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
  // The same of W x, at the last row of each sequence alone: [1,S,C].
  Tensor ends(const Rows& x, const Linear& linear, Tensor& state, bool silu,
              const Context& context) const;
  Tensor weight;  // [C,1,W]
  Tensor bias;    // [C], or undefined
};

}  // namespace lrnn::mixers
