#pragma once
#include <functional>

#include "experiments/transition.h"

namespace lrnn::experiments {

// The matrix states of one layer along a sequence, made again in float32 from what its mixer tells
// (mixers/mixer.h, Context::observe), whatever kernel and precision the model itself runs with.
class StateWalk {
 public:
  // Whether what a layer told makes a matrix: attention keeps tokens, Mamba numbers per channel.
  static bool possible(const Observed& told);
  // Updates of the state per token: of delta_product its Householder factors, 1 of all others.
  static int64_t steps(const Observed& told);

  // Goes on over the tokens that were told of, x [1,T,..]; `look` sees the state [H,K,V] (or its
  // multiple: where an exponential gate would overflow it is kept small) before every update.
  using Look = std::function<void(const torch::Tensor& state)>;
  void read(const Observed& told, const Look& look);

 private:
  void begin(const Observed& told);
  void householders(const Observed& told, const Look& look);
  void written(const Observed& told, const Look& look);

  torch::Tensor state_;    // [H,K,V]
  torch::Tensor largest_;  // [H]: of an exponential gate, the logarithm that state_ is divided by
};

}  // namespace lrnn::experiments
