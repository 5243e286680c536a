#pragma once
#include "compile/compile.h"

namespace lrnn::compile {

// Which state a compiled recogniser is in, though its own head says accept or reject only: the
// facts that the head's tables look at name the state, and they stand in the model's last residual
// stream. So this is another head for the same model, not the automaton over again.
class StateReadout {
 public:
  explicit StateReadout(const Compiled& compiled);
  StateReadout(const StateReadout&) = delete;

  // What the model's `observe` calls "stream" [.., width] -> one state per row.
  std::vector<int64_t> states(const torch::Tensor& stream) const;

 private:
  int64_t state(const double* x) const;

  Network net_;                        // the same plan, answering with states
  std::vector<int64_t> place_;         // its features in the model's stream; -1: an answer
  std::vector<double> offset_, unit_;  // a number of it is (offset + value) * unit there
  std::vector<const Gate*> gates_;     // those of the last layer that write answers
};

}  // namespace lrnn::compile
