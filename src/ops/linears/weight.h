#pragma once
#include <torch/types.h>

#include <vector>

// Weights as products read them. Under autocast every product casts its weight and every gradient
// is cast back: for a small model on a GPU that is a third of all launches. Who owns all the
// weights keeps them cast instead, and hands the copies to those who read them.
namespace lrnn::ops {

struct Weight {
  torch::Tensor value;  // the parameter
  torch::Tensor copy;   // the same in another type, a leaf with a gradient of its own; or undefined

  Weight(torch::Tensor value, torch::Tensor copy = {});  // NOLINT: every tensor is one
  torch::Tensor in(torch::Dtype dtype) const;            // itself, the copy or a cast
  torch::Tensor for_product() const;                     // as autocast has products read it
  Weight rows(int64_t begin, int64_t count) const;
};

// Weights of one kind, end to end along their first dimension.
struct WeightStack {
  std::vector<Weight> parts;
  torch::Tensor whole, whole_copy;  // the memory of all values, of all copies, as one; or undefined

  // The parts as the type asks for them, and the whole, where it is one already.
  struct Ready {
    std::vector<torch::Tensor> parts;
    torch::Tensor whole;
  };
  Ready in(torch::Dtype dtype) const;
  Ready for_product() const;
};

// What autocast makes of the other operand of a product.
torch::Tensor for_product(const torch::Tensor& x);

}  // namespace lrnn::ops
