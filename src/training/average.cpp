#include "training/average.h"

#include <algorithm>

namespace lrnn::training {

Average::Average(const torch::Tensor& weights, double decay) : weights_(weights), decay_(decay) {
  if (decay > 0) average_ = weights.detach().clone();
}

void Average::follow(int64_t t) {
  if (!any()) return;
  const torch::NoGradGuard no_grad;
  const double d = std::min(decay_, double(1 + t) / double(10 + t));
  average_.lerp_(weights_, 1 - d);
}

Average::Shown::Shown(const Average& of) {
  if (!of.any()) return;
  const torch::NoGradGuard no_grad;
  weights_ = of.weights_, kept_ = of.weights_.clone();
  weights_.copy_(of.average_);
}

Average::Shown::~Shown() {
  if (!kept_.defined()) return;
  const torch::NoGradGuard no_grad;
  weights_.copy_(kept_);
}

}  // namespace lrnn::training
