#pragma once
#include "compile/compile.h"
#include "model/model.h"

// One layer of a model taken apart, with the weights it has: what a certificate asks questions.
// Residual streams and states are those of the construction, before they are scaled (scales.h).
namespace lrnn::compile {

class Parts {
 public:
  Parts(const model::Model& model, const Network& net);

  // Rows of a residual stream [rows, width]: what every token has in it, before anything is read.
  torch::Tensor base(int64_t rows) const;
  int64_t width() const { return width_; }

  // x + mixer(norm(x)) for x [B,T,width]; `state` [B,H,K,V] is read and replaced.
  torch::Tensor mix(int64_t layer, const torch::Tensor& x, torch::Tensor& state) const;
  // x + mlp(norm(x)); x itself without an MLP.
  torch::Tensor look_up(int64_t layer, const torch::Tensor& x) const;
  // The label that the head names for the last residual stream [rows, width].
  torch::Tensor answer(const torch::Tensor& x) const;
  // What the mixer makes of its input: "k", "v" or "beta".
  torch::Tensor observed(int64_t layer, const torch::Tensor& x, const std::string& what) const;
  torch::Tensor initial_state(int64_t layer) const;  // [H,K,V]

 private:
  torch::Tensor normed(const torch::Tensor& x, const std::string& name) const;

  const Network& net_;
  model::ModelConfig config_;
  std::map<std::string, torch::Tensor> tensors_;
  std::vector<mixers::MixerPtr> mixers_;
  int64_t width_ = 0;
  torch::Tensor units_;  // of the residual stream
};

}  // namespace lrnn::compile
