#pragma once
#include <memory>

#include "model/draw_token.h"
#include "model/held_state.h"
#include "ops/gpu.h"

namespace lrnn::model {

// Sequences side by side that go on by themselves: each draws a token from its logits and reads it.
// On a GPU kSteps steps are recorded once and replayed, drawing included, so that nobody waits
// within them and the state is copied to its place only after the last. A state that grows with the
// sequence (attention) cannot be recorded: every kernel is launched by itself, but nobody waits
// either.
class Continuation {
 public:
  static constexpr int64_t kSteps = 16;
  // After the tokens that left this state behind (none: the beginning of time), and these, int64
  // [B]. With `record` false nothing is recorded: the same bits, for tests.
  Continuation(Model& model, const Drawing& how, State state, const Tensor& tokens,
               bool record = true);

  // How many steps to ask for where so many are wanted: on a CPU one, that nobody waits for more.
  int64_t steps(int64_t wanted) const;
  // The next tokens int64 [steps,B] for the numbers u float64 [steps,B], which may be anywhere.
  // They are where the model is, until the next call.
  Tensor next(const Tensor& u);
  int64_t kernels() const { return recording_ ? recording_->size() : 0; }  // of kSteps steps

 private:
  Tensor run(const Tensor& u);
  void record();

  Model& model_;
  Drawing how_;
  bool record_, stepped_ = false;
  State state_;
  Tensor tokens_;  // [B]
  // Of the recording, whose memory stays where it is.
  HeldState held_;
  Tensor held_tokens_, u_, drawn_;  // [B], [kSteps,B], [kSteps,B]
  std::unique_ptr<ops::Recording> recording_;
};

}  // namespace lrnn::model
