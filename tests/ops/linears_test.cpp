#include "ops/linears/linears.h"

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
