#include "ops/join/join.h"

#include "base/error.h"
#include "ops/take/take.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

Tensor leaf(at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64).requires_grad_(); }

TEST(Join, PiecesOfOneTensorAreJoinedWithoutACopy) {
  const Tensor x = leaf({3, 5, 12}), dy = torch::randn({3, 5, 12}, torch::kFloat64);
  const auto parts = ops::split(x, {4, 2, 6}, 2);
  EXPECT_TRUE(side_by_side(parts, 2));
  EXPECT_FALSE(side_by_side({parts[0], parts[2]}, 2));
  EXPECT_FALSE(side_by_side({parts[1], parts[0]}, 2));
  const Tensor y = join(parts, 2);
  EXPECT_EQ(y.const_data_ptr(), x.const_data_ptr());
  EXPECT_TRUE(torch::equal(y, x));
  EXPECT_TRUE(torch::equal(torch::autograd::grad({y}, {x}, {dy})[0], dy));
  EXPECT_THROW(ops::split(x, {4, 2}, 2), Error);
}

TEST(Join, OthersAreCopied) {
  const Tensor a = leaf({2, 3}), b = leaf({2, 4}), dy = torch::randn({2, 7}, torch::kFloat64);
  EXPECT_FALSE(side_by_side({a, b}, 1));
  // Rows of one tensor follow each other in memory but not along columns.
  const Tensor rows = torch::randn({4, 3});
  EXPECT_FALSE(side_by_side({rows.narrow(0, 0, 2), rows.narrow(0, 2, 2)}, 1));
  EXPECT_TRUE(side_by_side({rows.narrow(0, 0, 2), rows.narrow(0, 2, 2)}, 0));
  const Tensor y = join({a, b}, 1);
  EXPECT_TRUE(torch::equal(y, torch::cat({a, b}, 1)));
  const auto got = torch::autograd::grad({y}, {a, b}, {dy});
  EXPECT_TRUE(torch::equal(got[0], dy.narrow(1, 0, 3)));
  EXPECT_TRUE(torch::equal(got[1], dy.narrow(1, 3, 4)));
}

TEST(Join, APieceWithoutAGradientCountsAsZeros) {
  const Tensor x = leaf({2, 5}), dy = torch::randn({2, 2}, torch::kFloat64);
  const auto parts = ops::split(x, {3, 2}, 1);
  const Tensor dx = torch::autograd::grad({parts[1]}, {x}, {dy})[0];
  EXPECT_TRUE(torch::equal(dx, torch::cat({torch::zeros({2, 3}, torch::kFloat64), dy}, 1)));
}

TEST(Pick, RowsAndTheirGradient) {
  const Tensor x = leaf({6, 3}), index = torch::tensor({1, 4, 5}),
               dy = torch::randn({3, 3}, torch::kFloat64);
  const Tensor y = pick(x, index);
  EXPECT_TRUE(torch::equal(y, x.index_select(0, index)));
  EXPECT_TRUE(torch::equal(torch::autograd::grad({y}, {x}, {dy})[0],
                           torch::autograd::grad({x.index_select(0, index)}, {x}, {dy})[0]));
}

}  // namespace
}  // namespace lrnn::ops
