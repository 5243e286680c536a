#pragma once
#include "mixers/mixer.h"
#include "model/model.h"

namespace lrnn::model {

// down(act(gate(x)) * up(x)), with SiLU (swiglu) or GELU (geglu)
class GatedMlp : public torch::nn::Module, public mixers::HasPacks {
 public:
  GatedMlp(int64_t width, const MlpConfig& config);
  Tensor forward(const Tensor& x) const;
  std::vector<mixers::Pack*> packs() override { return {&gate_up_}; }

 private:
  bool gelu_;
  std::shared_ptr<mixers::Linear> gate_, up_, down_;
  mixers::Pack gate_up_;
};

// RWKV's: value(relu(key(x + (before - x) x_k))^2), where `before` is the row before
class ChannelMix : public torch::nn::Module {
 public:
  ChannelMix(int64_t width, const MlpConfig& config);
  // Reads and replaces `state` [S,width], the last row of each sequence.
  Tensor forward(const Tensor& x, Tensor& state, const Context& context) const;

 private:
  Tensor x_k_;
  std::shared_ptr<mixers::Linear> key_, value_;
};

// Null where the config has no norms.
std::shared_ptr<mixers::Norm> make_norm(const ModelConfig& config);

// The number of hidden units: `hidden`, or 4·2/3 of the width rounded up to a multiple of 256
// (swiglu), 1.3 rounded up to 64 (geglu), or 4 rounded up to 32 (channel_mix).
int64_t hidden_units(const MlpConfig& config, int64_t width);

// The residual stream between blocks: x + y, or x where y is undefined. The sum is left to the norm
// that reads it.
struct Stream {
  mixers::Rows x;
  Tensor y;
  Tensor sum() const { return y.defined() ? x.rows() + y : x.rows(); }
};

// x + mixer(norm(x)), then x + mlp(norm(x)); or, plain, norm(mixer(norm(x)))
class Block : public torch::nn::Module {
 public:
  Block(const ModelConfig& config, int64_t index);

  // in.x as in Rows: activations, or the embedding with the tokens. With context.read_at the
  // residual stream, like everything else, goes on at those rows only.
  Stream forward(const Stream& in, mixers::State& state, const Context& context) const;

  mixers::Mixer& mixer() const { return *mixer_; }
  int64_t mlp_state_size() const;  // floats per sequence, beside the mixer's

 private:
  Stream with_channel_mix(const mixers::Rows& stream, const mixers::Rows& normed,
                          mixers::State& state, const Context& context) const;

  bool plain_;
  std::shared_ptr<mixers::Norm> attn_norm_, mlp_norm_, out_norm_;
  mixers::MixerPtr mixer_;
  std::shared_ptr<GatedMlp> mlp_;
  std::shared_ptr<ChannelMix> channel_mix_;
};

// block.forward(in, state, context), of which nothing is kept for backward but `in`: backward runs
// the block again, and with it its own backward. The same bits, for the same kernels run on the
// same numbers. The state that comes out has no derivative.
Stream run_again_in_backward(const std::shared_ptr<Block>& block, const Stream& in,
                             mixers::State& state, const Context& context);

}  // namespace lrnn::model
