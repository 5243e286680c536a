#pragma once
#include "ops/torch.h"

namespace lrnn::training {

// A running average of all weights over the updates, for evaluations and checkpoints:
//
//   average <- d average + (1 - d) weights,   d = min(decay, (1 + t) / (10 + t)) after update t,
//
// so that the initial weights are soon forgotten however slow it is. Training never reads it.
class Average {
 public:
  // Of the flat buffer that the parameters are views of; with a decay of 0 there is none.
  Average(const torch::Tensor& weights, double decay);
  bool any() const { return average_.defined(); }
  void follow(int64_t t);  // after update number t, counted from 1
  const torch::Tensor& values() const { return average_; }

  // While it lives the parameters are the average; of none it changes nothing.
  class Shown {
   public:
    explicit Shown(const Average& of);
    ~Shown();
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

   private:
    torch::Tensor weights_, kept_;
  };

 private:
  torch::Tensor weights_, average_;
  double decay_;
};

}  // namespace lrnn::training
