#pragma once
#include <torch/types.h>

#include <unordered_map>

namespace lrnn::ops {

// Under autocast every product casts its weight and every gradient is cast back: for a small model
// on a GPU that is a third of all launches. Who owns all the weights keeps them cast instead, each
// a leaf of its own, and says so here: while this lives, products of this thread read those copies.
class CastWeights {
 public:
  using Copies = std::unordered_map<const c10::TensorImpl*, torch::Tensor>;
  explicit CastWeights(const Copies& copies);
  ~CastWeights();
  CastWeights(const CastWeights&) = delete;
  CastWeights& operator=(const CastWeights&) = delete;

 private:
  const Copies* before_;
};

// The weight in `dtype`: the copy in use, or undefined where there is none.
torch::Tensor cast_weight(const torch::Tensor& weight, torch::Dtype dtype);
// The weight itself, the copy in use, or a cast.
torch::Tensor weight_in(const torch::Tensor& weight, torch::Dtype dtype);
// x, or a weight, as autocast would have a product read it: the copy in use, a cast, or itself.
torch::Tensor for_product(const torch::Tensor& x);

}  // namespace lrnn::ops
