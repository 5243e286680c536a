#include "model/decoder.h"

#include "base/error.h"

namespace lrnn::model {

Decoder::Decoder(Model& model, int64_t sequences, bool record)
    : model_(model),
      record_(record && !model.device().is_cpu() && model.state_size(1) == model.state_size(2)) {
  check(sequences >= 1, "a decoder needs at least 1 sequence, got ", sequences);
  const torch::InferenceMode no_gradients;
  tokens_ = torch::zeros({sequences}, torch::TensorOptions(torch::kInt64).device(model.device()));
}

void Decoder::restart() { first_ = true; }

void Decoder::go_on(const State& state) {
  const torch::InferenceMode no_gradients;
  record_ ? keep(state) : void(state_ = state);
  first_ = false;
}

// One step from the state, which it replaces.
void Decoder::forward() { logits_ = model_.forward(tokens_.unsqueeze(1), state_).squeeze(1); }

// What a recording reads and writes must stay where it is.
void Decoder::keep(const State& state) {
  if (!held_.keep(state)) recording_.reset();
  state_ = held_.get();
}

void Decoder::record() {
  const auto before = held_.copies();
  recording_ = ops::gpu()->record([&] {
    state_ = held_.get();
    forward();
    held_.keep(state_);
    state_ = held_.get();
  });
  recorded_ = logits_;
  held_.put_back(before);  // the rehearsals have read the token, too
}

const Tensor& Decoder::step(const Tensor& tokens) {
  check(tokens.dim() == 1 && tokens.scalar_type() == torch::kInt64 &&
            tokens.size(0) == tokens_.size(0),
        "a decoder of ", tokens_.size(0), " sequences needs int64 [", tokens_.size(0),
        "] tokens, got ", tokens.scalar_type(), " ", tokens.sizes());
  const torch::InferenceMode no_gradients;
  tokens_.copy_(tokens, /*non_blocking=*/true);
  if (first_) {
    state_.clear();
    forward();
    if (record_) keep(State(state_));
    first_ = false;
  } else if (!record_) {
    forward();
  } else {
    if (!recording_) record();
    recording_->replay();
    logits_ = recorded_;
  }
  return logits_;
}

}  // namespace lrnn::model
