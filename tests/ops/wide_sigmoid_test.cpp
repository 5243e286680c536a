#include "ops/wide_sigmoid.h"

#include <gtest/gtest.h>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// scale * sigmoid(x) and its gradient by torch's own, in a scale that is not 1.
TEST(WideSigmoid, IsItsDefinition) {
  torch::manual_seed(3);
  const auto x = torch::randn({5, 7}, torch::kFloat64), dy = torch::randn({5, 7}, torch::kFloat64);
  const auto ours = x.clone().requires_grad_(), theirs = x.clone().requires_grad_();
  const auto y = wide_sigmoid(ours, 2), want = 2 * torch::sigmoid(theirs);
  EXPECT_TRUE(torch::allclose(y, want, 1e-12, 1e-12));
  y.backward(dy), want.backward(dy);
  EXPECT_TRUE(torch::allclose(ours.grad(), theirs.grad(), 1e-12, 1e-12));
}

}  // namespace
}  // namespace lrnn::ops
