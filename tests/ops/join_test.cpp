#include "ops/join/join.h"

#include "base/error.h"
#include "ops/take/take.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

Tensor leaf(at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64).requires_grad_(); }

// The parts of a stack as one: its own memory where it has it, else a copy, with the same
// gradients.
TEST(Join, TheWholeOfAStackIsNotCopied) {
  const Tensor flat = torch::randn({7, 3}, torch::kFloat64), dy = torch::randn_like(flat);
  std::vector<Tensor> parts;
  for (const auto& part : pieces(flat, {3, 4}, 0)) parts.push_back(part.detach().requires_grad_());
  for (const bool whole : {true, false}) {
    const Tensor y = join({parts, whole ? flat : Tensor()});
    EXPECT_EQ(y.const_data_ptr() == flat.const_data_ptr(), whole);
    EXPECT_TRUE(torch::equal(y, flat));
    const auto got = torch::autograd::grad({y}, parts, {dy});
    EXPECT_TRUE(torch::equal(torch::cat(got), dy));
  }
}

TEST(Join, PiecesMakeUpTheWhole) {
  const Tensor x = leaf({3, 5, 12}), dy = torch::randn({3, 5, 12}, torch::kFloat64);
  const auto parts = ops::split(x, {4, 2, 6}, 2);
  EXPECT_TRUE(torch::equal(torch::cat(parts, 2), x));
  EXPECT_TRUE(torch::equal(torch::autograd::grad({torch::cat(parts, 2)}, {x}, {dy})[0], dy));
  EXPECT_THROW(ops::split(x, {4, 2}, 2), Error);
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
