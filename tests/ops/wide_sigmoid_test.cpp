#include "ops/wide_sigmoid/wide_sigmoid.h"

#include <gtest/gtest.h>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// Of bfloat16: torch's values to the bit, in float32; 1 from a logit of 6.25 on, where no gradient
// is left either.
TEST(WideSigmoid, IsRoundedAsItsArgument) {
  torch::manual_seed(4);
  const auto x = 4 * torch::randn({50, 7}, torch::kBFloat16), dy = torch::randn({50, 7});
  const auto ours = x.clone().requires_grad_(), theirs = x.clone().requires_grad_();
  const auto y = wide_sigmoid(ours, 2), want = 2 * torch::sigmoid(theirs);
  EXPECT_EQ(y.scalar_type(), torch::kFloat32);
  EXPECT_TRUE(torch::equal(y, want.to(torch::kFloat32)));
  y.backward(dy), want.backward(dy.to(torch::kBFloat16));
  EXPECT_TRUE(torch::allclose(ours.grad(), theirs.grad(), 2e-2, 1e-6));

  const auto large = torch::full({1}, 6.25, torch::kBFloat16).requires_grad_();
  const auto two = wide_sigmoid(large, 2);
  two.backward(torch::ones({1}));
  EXPECT_EQ(two.item<float>(), 2);
  EXPECT_EQ(large.grad().item<float>(), 0);
}

}  // namespace
}  // namespace lrnn::ops
