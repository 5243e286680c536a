#pragma once
#include "mixers/mixer.h"
#include "model/model.h"

namespace lrnn::model {

// down(silu(gate(x)) * up(x))
class SwiGlu : public torch::nn::Module {
 public:
  SwiGlu(int64_t width, int64_t hidden);
  Tensor forward(const Tensor& x) const;

 private:
  std::shared_ptr<mixers::Linear> gate_, up_, down_;
};

// The number of hidden units: `hidden`, or 4·2/3 of the width rounded up to a multiple of 256.
int64_t hidden_units(const MlpConfig& config, int64_t width);

// x + mixer(norm(x)), then x + mlp(norm(x))
class Block : public torch::nn::Module {
 public:
  Block(const ModelConfig& config);

  // x as in Rows: activations, or the embedding with the tokens. With context.last_only the
  // residual stream, like everything else, is computed at the last positions only.
  Tensor forward(const mixers::Rows& x, mixers::State& state, const Context& context) const;

  mixers::Mixer& mixer() const { return *mixer_; }

 private:
  std::shared_ptr<mixers::RmsNorm> attn_norm_, mlp_norm_;
  mixers::MixerPtr mixer_;
  std::shared_ptr<SwiGlu> mlp_;
};

}  // namespace lrnn::model
