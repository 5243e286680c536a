#pragma once
#include "ops/torch.h"
#include "tests/close.h"

// An op against another way to say it: results and gradients.
namespace lrnn::ops {

using TensorVector = std::vector<torch::Tensor>;

// The results and, for fixed random weights of every result, the gradients of the inputs.
template <class F> TensorVector values_and_gradients(const TensorVector& inputs, F&& f) {
  TensorVector leaves;
  for (const auto& x : inputs) leaves.push_back(x.detach().clone().requires_grad_());
  TensorVector out = f(leaves);
  torch::manual_seed(7);
  torch::Tensor loss = torch::zeros({}, out[0].options().dtype(torch::kFloat64));
  for (const auto& y : out)
    loss = loss + (y.to(torch::kFloat64) * torch::randn(y.sizes(), torch::kFloat64)).sum();
  const auto grads = torch::autograd::grad({loss}, leaves);
  for (auto& y : out) y = y.detach();
  out.insert(out.end(), grads.begin(), grads.end());
  return out;
}

inline void expect_same(const TensorVector& got, const TensorVector& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].sizes(), want[i].sizes());
    EXPECT_CLOSE_TO("tensor", got[i], want[i], tolerance);
  }
}

}  // namespace lrnn::ops
