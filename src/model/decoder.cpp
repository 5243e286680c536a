#include "model/decoder.h"

#include "base/error.h"

namespace lrnn::model {
namespace {

std::vector<Tensor> flat(const State& state) {
  std::vector<Tensor> out;
  for (const auto& block : state)
    for (const auto& x : block)
      if (x.defined()) out.push_back(x);
  return out;
}

bool same_shapes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].sizes() != b[i].sizes() || a[i].scalar_type() != b[i].scalar_type()) return false;
  return true;
}

}  // namespace

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
  if (same_shapes(flat(state_), flat(state))) {
    at::_foreach_copy_(flat(state_), flat(state));
    return;
  }
  recording_.reset();
  state_ = state;
  for (auto& block : state_)
    for (auto& x : block)
      if (x.defined()) x = x.clone();
}

void Decoder::record() {
  std::vector<Tensor> before;
  for (const auto& x : flat(state_)) before.push_back(x.clone());
  const State held = state_;
  recording_ = ops::gpu()->record([&] {
    state_ = held;
    forward();
    at::_foreach_copy_(flat(held), flat(state_));
    state_ = held;
  });
  recorded_ = logits_;
  at::_foreach_copy_(flat(held), before);  // the rehearsals have read the token, too
}

const Tensor& Decoder::step(const Tensor& tokens) {
  check(tokens.dim() == 1 && tokens.scalar_type() == torch::kInt64 &&
            tokens.size(0) == tokens_.size(0),
        "a decoder of ", tokens_.size(0), " sequences needs int64 [", tokens_.size(0),
        "] tokens, got ", tokens.scalar_type(), " ", tokens.sizes());
  const torch::InferenceMode no_gradients;
  tokens_.copy_(tokens, /*non_blocking=*/true);
  if (first_) {
    State held;
    std::swap(held, state_);
    forward();
    if (record_) std::swap(held, state_), keep(held);
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
