#pragma once
#include "mixers/layers.h"

namespace lrnn::mixers {

// second(activation(first(x))) through a narrow middle, the second with or without a bias. The
// names are those of the checkpoints.
class LowRank : public torch::nn::Module {
 public:
  LowRank(int64_t in, int64_t rank, int64_t out, bool bias, const char* first, const char* second) {
    first_ = register_module(first, std::make_shared<Linear>(in, rank));
    second_ = register_module(second, std::make_shared<Linear>(rank, out, bias));
  }
  Tensor forward(const Tensor& x, Tensor (*activation)(const Tensor&) = nullptr) const {
    const Tensor y = first_->forward(x);
    return second_->forward(activation ? activation(y) : y);
  }

 private:
  std::shared_ptr<Linear> first_, second_;
};

}  // namespace lrnn::mixers
