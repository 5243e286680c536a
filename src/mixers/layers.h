#pragma once
#include "ops/linears/linears.h"
#include "ops/torch.h"

// The small modules that mixers and models are made of. Their weights are unset until somebody
// initialises or loads them: building a large model to count or to load it costs nothing.
namespace lrnn::mixers {

using torch::Tensor;
struct Context;
struct Rows;

// A layer with a weight that products read.
class Weighted : public torch::nn::Module {
 public:
  ops::Weight read() const { return {weight, copy}; }
  Tensor weight;
  Tensor copy;  // lent by the optimiser while it has one in another type, see ops::Weight
};

// y = x W^T, or x W^T + bias where a layer has one.
class Linear : public Weighted {
 public:
  Linear(int64_t in, int64_t out, bool with_bias = false) {
    weight = register_parameter("weight", torch::empty({out, in}));
    if (with_bias) bias = register_parameter("bias", torch::empty(out));
  }
  Tensor forward(const Tensor& x) const {
    const Tensor y = ops::linear(x, read());
    return bias.defined() ? y + bias.to(y.scalar_type()) : y;
  }
  Tensor bias;  // [out], or undefined; the weight is [out,in]
};

// Layers whose weights may be read as one. The optimiser, which decides where parameters lie, lays
// those of a pack end to end and says so; until then, and when somebody has moved a member since,
// the pack is no more than its members.
class Pack {
 public:
  Pack() = default;
  explicit Pack(std::vector<std::shared_ptr<Weighted>> members) : members_(std::move(members)) {}
  void add(std::shared_ptr<Weighted> member) { members_.push_back(std::move(member)); }
  const std::vector<std::shared_ptr<Weighted>>& members() const { return members_; }
  void seat(const Tensor& whole) { whole_ = whole; }           // of all weights, [sum,..]
  void lend(const Tensor& whole_copy) { copy_ = whole_copy; }  // of all copies

  ops::WeightStack read() const;
  // The members among these weights.
  ops::Joint joint(const std::vector<ops::Weight>& among) const;

 private:
  Tensor if_it_holds(const Tensor& whole, Tensor Weighted::*which) const;

  std::vector<std::shared_ptr<Weighted>> members_;
  Tensor whole_, copy_;
};
// Modules that have packs.
class HasPacks {
 public:
  virtual ~HasPacks() = default;
  virtual std::vector<Pack*> packs() = 0;
};

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

// With an offset, as RWKV has it.
class AffineNorm final : public Norm {
 public:
  AffineNorm(int64_t size, double eps) : Norm(size, eps) {
    bias = register_parameter("bias", torch::empty(size));
  }
  Tensor forward(const Tensor& x) const override;
  double initial() const override { return 1; }
  Tensor bias;  // [size]
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
class ShortConv : public Weighted {
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
  Tensor bias;  // [C], or undefined; the weight is [C,1,W]
};

// W x as heads [..,H,D], through a short convolution with SiLU where there is one, whose memory is
// state[which].
struct HeadProjection {
  Tensor forward(const Rows& x, std::vector<Tensor>& state, size_t which,
                 const Context& context) const;
  // Where nobody reads more than the last row of each sequence (Context::read_at), only those.
  Tensor ends(const Rows& x, std::vector<Tensor>& state, size_t which,
              const Context& context) const;
  std::shared_ptr<Linear> proj;
  std::shared_ptr<ShortConv> conv;
  int64_t heads = 1;
};

// second(activation(first(x))) through a narrow middle, the second with or without a bias. The
// names are those of the checkpoints.
class LowRank : public torch::nn::Module {
 public:
  LowRank(int64_t in, int64_t rank, int64_t out, bool bias, const char* first, const char* second) {
    first_ = register_module(first, std::make_shared<Linear>(in, rank));
    second_ = register_module(second, std::make_shared<Linear>(rank, out, bias));
  }
  Tensor forward(const Tensor& x, Tensor (*activation)(const Tensor&) = nullptr) const {
    const Tensor y = first_->forward(x);
    return second_->forward(activation ? activation(y) : y);
  }

 private:
  std::shared_ptr<Linear> first_, second_;
};

// The row before each of x [B,T,D] in its sequence: zero, or `state` [S,D], before the first.
// Leaves the last row of each sequence in `state`.
Tensor shifted(const Tensor& x, Tensor& state, const Context& context);

}  // namespace lrnn::mixers
