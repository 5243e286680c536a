#pragma once
#include <memory>
#include <vector>

#include "mixers/layers.h"

namespace lrnn::model {

// For who reads weights over and over and never changes them: while it lives, the layers of a
// module read copies in the type of products, made once, and those of a pack lie end to end, so
// that they are one product (see ops/linears/weight.h).
class WeightCopies {
 public:
  WeightCopies(torch::nn::Module& module, torch::Dtype dtype);
  ~WeightCopies();
  WeightCopies(const WeightCopies&) = delete;
  WeightCopies& operator=(const WeightCopies&) = delete;

 private:
  void lend(mixers::Pack& pack, torch::Dtype dtype);

  std::vector<std::shared_ptr<torch::nn::Module>> modules_;  // outlive the pointers
  std::vector<mixers::Weighted*> layers_;
  std::vector<mixers::Pack*> packs_;
};

}  // namespace lrnn::model
