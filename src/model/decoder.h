#pragma once
#include <memory>

#include "model/held_state.h"
#include "ops/gpu.h"

namespace lrnn::model {

// Reads sequences side by side, a token of each at a time, and carries the state: a forward with
// T = 1, which on a GPU is recorded once and replayed (one launch, however many kernels). The first
// token, which finds no state, is not part of the recording. A state that grows with the sequence
// (attention) cannot be recorded, and every kernel is launched by itself.
class Decoder {
 public:
  // With `record` false nothing is recorded: the same bits, for tests.
  Decoder(Model& model, int64_t sequences, bool record = true);

  // tokens int64 [B], on any device -> logits [B,vocabulary] on the model's, valid until the next
  // step.
  const Tensor& step(const Tensor& tokens);
  void restart();  // the next tokens are the first ones
  // The next tokens follow those that left this state behind, [B,..].
  void go_on(const State& state);
  const State& state() const { return state_; }
  int64_t kernels() const { return recording_ ? recording_->size() : 0; }  // of a recorded step

 private:
  void forward();
  void keep(const State& state);
  void record();

  Model& model_;
  bool record_, first_ = true;
  Tensor tokens_, logits_;  // [B], [B,vocabulary]
  Tensor recorded_;         // where the recording leaves its logits
  State state_;             // recorded: always the memory of held_
  HeldState held_;
  std::unique_ptr<ops::Recording> recording_;
};

}  // namespace lrnn::model
