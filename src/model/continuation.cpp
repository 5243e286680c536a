#include "model/continuation.h"

#include <algorithm>

#include "base/error.h"

namespace lrnn::model {

Continuation::Continuation(Model& model, const Drawing& how, State state, const Tensor& tokens,
                           bool record)
    : model_(model),
      how_(how),
      record_(record && !model.device().is_cpu() && model.state_size(1) == model.state_size(2)),
      state_(std::move(state)) {
  check(tokens.dim() == 1 && tokens.scalar_type() == torch::kInt64 && tokens.size(0) >= 1,
        "a text goes on from int64 [B] tokens, got ", tokens.scalar_type(), " ", tokens.sizes());
  const torch::InferenceMode no_gradients;
  tokens_ = tokens.to(model.device());
}

int64_t Continuation::steps(int64_t wanted) const {
  if (model_.device().is_cpu()) return 1;
  // What is recorded goes from a step's state to the next. A prompt's, or none, is not quite that.
  if (record_ && !stepped_) return 1;
  return recording_ ? kSteps : std::min(wanted, kSteps);
}

Tensor Continuation::next(const Tensor& u) {
  check(u.dim() == 2 && u.size(1) == tokens_.size(0) && u.scalar_type() == torch::kFloat64,
        "a continuation of ", tokens_.size(0), " sequences needs float64 [steps,", tokens_.size(0),
        "] numbers, got ", u.scalar_type(), " ", u.sizes());
  const torch::InferenceMode no_gradients;
  // An unrecorded step would leave the recording's memory behind.
  check(!recording_ || u.size(0) == kSteps, "a recorded continuation takes ", kSteps,
        " steps at a time, not ", u.size(0));
  if (!record_ || !stepped_ || u.size(0) != kSteps)
    return run(u.to(model_.device(), /*non_blocking=*/true));
  if (!recording_) record();
  u_.copy_(u, /*non_blocking=*/true);
  recording_->replay();
  return drawn_;
}

Tensor Continuation::run(const Tensor& u) {
  std::vector<Tensor> drawn;
  for (int64_t i = 0; i < u.size(0); ++i) {
    const Tensor logits = model_.forward(tokens_.unsqueeze(1), state_).squeeze(1);
    tokens_ = ops::draw_tokens(logits, u[i], how_);
    drawn.push_back(tokens_);
  }
  stepped_ = true;
  return torch::stack(drawn);
}

void Continuation::record() {
  held_.keep(state_);
  held_tokens_ = tokens_.clone();
  u_ = torch::zeros({kSteps, tokens_.size(0)},
                    torch::TensorOptions(torch::kFloat64).device(model_.device()));
  const auto state = held_.copies();
  const Tensor tokens = tokens_.clone();
  recording_ = ops::gpu()->record([&] {
    state_ = held_.get(), tokens_ = held_tokens_;
    drawn_ = run(u_);
    check(held_.keep(state_), "the state of a step has other shapes than the one before it");
    held_tokens_.copy_(tokens_);
  });
  state_ = held_.get(), tokens_ = held_tokens_;
  held_.put_back(state), held_tokens_.copy_(tokens);  // as it was before the rehearsals
}

}  // namespace lrnn::model
