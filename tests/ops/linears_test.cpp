#include "ops/linears/linears.h"

#include <ATen/autocast_mode.h>

#include "base/error.h"
#include "ops/take/take.h"
#include "tests/ops/same.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

Tensor random(at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); }

TEST(Linears, AreTorchsOneByOne) {
  torch::manual_seed(0);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{5, 6}, {2, 7, 6}, {1, 3, 2, 6}, {0, 6}}) {
    const TensorVector inputs = {random(shape), random({4, 6}), random({1, 6}), random({9, 6})};
    expect_same(values_and_gradients(inputs,
                                     [](const TensorVector& in) {
                                       return linears(in[0], {in[1], in[2], in[3]});
                                     }),
                values_and_gradients(inputs,
                                     [](const TensorVector& in) {
                                       return TensorVector{torch::linear(in[0], in[1]),
                                                           torch::linear(in[0], in[2]),
                                                           torch::linear(in[0], in[3])};
                                     }),
                1e-12);
  }
}

TEST(Linears, RowsNeedNotBeContiguous) {
  torch::manual_seed(1);
  const TensorVector inputs = {random({3, 6, 4}), random({5, 6})};
  expect_same(
      values_and_gradients(inputs,
                           [](const TensorVector& in) {
                             return TensorVector{ops::linear(in[0].transpose(1, 2), in[1])};
                           }),
      values_and_gradients(inputs,
                           [](const TensorVector& in) {
                             return TensorVector{torch::linear(in[0].transpose(1, 2), in[1])};
                           }),
      1e-12);
}

// A result that nobody used, and an input that wants no gradient.
TEST(Linears, OnlyWhatIsAskedFor) {
  const Tensor x = random({3, 4}), w = random({2, 4}).requires_grad_(),
               unused = random({5, 4}).requires_grad_();
  linears(x, {w, unused})[0].sum().backward();
  EXPECT_CLOSE_TO("dw", w.grad(), x.sum(0).expand({2, 4}), 1e-12);
  EXPECT_FALSE(unused.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

// Weights that lie end to end, as one product and one by one: values, gradients, and those of one
// result alone.
TEST(Linears, OfAStackAreThoseOfItsParts) {
  torch::manual_seed(6);
  const Tensor flat = random({24 + 40 + 8, 6}), x = random({3, 5, 6}).requires_grad_();
  std::vector<Tensor> leaves;
  for (const auto& part : flat.split_with_sizes({24, 40, 8}, 0))
    leaves.push_back(part.detach().requires_grad_());
  const std::vector<Weight> parts(leaves.begin(), leaves.end());
  const Tensor want = torch::linear(x, torch::cat(leaves)), dy = torch::randn_like(want);
  auto of = leaves;
  of.push_back(x);
  const auto dwant = torch::autograd::grad({want}, of, {dy});
  for (const bool whole : {true, false}) {
    const WeightStack stack{parts, whole ? flat : Tensor(), {}};
    const Tensor got = ops::linear(x, stack);
    EXPECT_CLOSE("y", got, want);
    const auto dgot = torch::autograd::grad({got}, of, {dy});
    for (size_t i = 0; i < of.size(); ++i) EXPECT_CLOSE(cat("gradient ", i), dgot[i], dwant[i]);
    EXPECT_CLOSE("second", linears(x, stack)[1], torch::linear(x, leaves[1]));
  }
}

// Under autocast a weight is read in its copy, where it has one, and the gradient goes there.
TEST(Linears, ReadTheCopyOfAWeight) {
  const Tensor x = torch::randn({3, 8}), w = torch::randn({4, 8}).requires_grad_(),
               copy = w.detach().to(torch::kBFloat16).requires_grad_();
  const Weight weight(w, copy);
  EXPECT_TRUE(weight.for_product().is_same(w)) << "without autocast";
  EXPECT_TRUE(weight.in(torch::kBFloat16).is_same(copy));
  EXPECT_TRUE(weight.in(torch::kFloat32).is_same(w));
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const bool copied = weight.for_product().is_same(copy);
  const WeightStack stack{{weight, weight}, {}, torch::cat({copy, copy}).detach()};
  const bool whole = stack.for_product().whole.is_same(stack.whole_copy);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_TRUE(copied);
  EXPECT_TRUE(whole);
  EXPECT_FALSE(stack.for_product().whole.defined()) << "the whole of the values";
}

TEST(Linears, HaveASecondDerivative) {
  const Tensor x = random({3, 4}).requires_grad_(), w = random({2, 4}).requires_grad_();
  const auto twice = [&](const Tensor& y) {
    const auto g = torch::autograd::grad({y.pow(3).sum()}, {x}, {}, true, true);
    return torch::autograd::grad({g[0].pow(2).sum()}, {w})[0];
  };
  EXPECT_CLOSE_TO("d2", twice(ops::linear(x, w)), twice(torch::linear(x, w)), 1e-12);
}

TEST(Take, SameBitsOnAnyNumberOfThreads) {
  torch::manual_seed(3);
  const Tensor index = torch::randint(0, 3, {6000}, torch::kInt64);
  const TensorVector table = {torch::randn({3, 200})};
  const int before = at::get_num_threads();
  const auto run = [&](int threads) {
    at::set_num_threads(threads);
    return values_and_gradients(table, [&](const TensorVector& in) { return take(in, index); });
  };
  const auto one = run(1), two = run(2), three = run(3);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(torch::equal(one[i], two[i]));
    EXPECT_TRUE(torch::equal(one[i], three[i]));
  }
}

TEST(Take, RefusesRowsThatAreNotThere) {
  EXPECT_THROW(ops::take({random({2, 3})}, torch::tensor({0, 2}, torch::kInt64)), Error);
  EXPECT_THROW(ops::take({random({2, 3})}, torch::tensor({0, 1}, torch::kInt32)), Error);
}

}  // namespace
}  // namespace lrnn::ops
