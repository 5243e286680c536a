#pragma once
#include <vector>

#include "model/model.h"

namespace lrnn::model {

// A state whose memory stays where it is, as recordings want it.
class HeldState {
 public:
  // Takes the numbers in. False: the tensors are others than before, and so is their memory.
  bool keep(const State& state);
  const State& get() const { return state_; }
  std::vector<Tensor> copies() const;
  void put_back(const std::vector<Tensor>& copies);

 private:
  State state_;
};

}  // namespace lrnn::model
