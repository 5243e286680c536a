#include "ops/gated_mlp/gated_mlp.h"
#include "ops/join/join.h"
#include "ops/linears/few_linear.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/read_at/read_at.h"
#include "ops/take/take.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"
#include "tests/ops/same.h"

// Ops that save passes and launches are what their definitions say, and so are their gradients.
// Recurrences, row-wise functions and convolutions have tests of their own.
namespace lrnn::ops {
namespace {

using torch::Tensor;

struct Pair {
  std::string name;
  std::function<TensorVector(const TensorVector&)> op, definition;
  TensorVector inputs;
};

TensorVector list_of(const std::pair<Tensor, Tensor>& x) { return {x.first, x.second}; }

std::vector<Pair> pairs() {
  torch::manual_seed(2);
  const auto normal = [](at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); };
  const Tensor index = torch::randint(-1, 5, {3, 40}, torch::kInt64),
               rows = torch::tensor({3, 0, 4}, torch::kInt64);
  return {
      {"linears",
       [](auto& x) {
         return linears(x[0], {x[1], x[2]});
       },
       [](auto& x) {
         return linears_definition(x[0], {x[1], x[2]});
       },
       {normal({2, 7, 6}), normal({4, 6}), normal({1, 6})}},
      {"take",
       [=](auto& x) { return take(x, index); },
       [=](auto& x) { return take_definition(x, index); },
       {normal({5, 7}), normal({5, 2, 65}), normal({5})}},
      {"pick",
       [=](auto& x) { return TensorVector{pick(x[0], rows)}; },
       [=](auto& x) { return TensorVector{pick_definition(x[0], rows)}; },
       {normal({5, 3})}},
      {"join",
       [](auto& x) {
         return TensorVector{join({x, {}})};
       },
       [](auto& x) { return TensorVector{join_definition(x, 0)}; },
       {normal({3, 2, 2}), normal({5, 2, 2})}},
      {"linears of a stack",
       [](auto& x) {
         return linears(x[0], WeightStack{{x[1], x[2]}, {}, {}});
       },
       [](auto& x) {
         return linears_definition(x[0], {x[1], x[2]});
       },
       {normal({2, 7, 6}), normal({8, 6}), normal({16, 6})}},
      {"wide_matmul",
       [](auto& x) { return TensorVector{wide_matmul(x[0], x[1])}; },
       [](auto& x) { return TensorVector{wide_matmul_definition(x[0], x[1])}; },
       {normal({3, 4, 2}), normal({3, 2, 5})}},
      {"split",
       [](auto& x) {
         return ops::split(x[0], {2, 3}, 1);
       },
       [](auto& x) {
         return split_definition(x[0], {2, 3}, 1);
       },
       {normal({3, 5})}},
      {"read_state",
       [](auto& x) { return TensorVector{read_state(x[0], x[1], 0.3)}; },
       [](auto& x) { return TensorVector{read_state_definition(x[0], x[1], 0.3)}; },
       {normal({3, 2, 4}), normal({3, 2, 4, 5})}},
      {"wide_sigmoid",
       [](auto& x) { return TensorVector{wide_sigmoid(x[0], 2)}; },
       [](auto& x) { return TensorVector{wide_sigmoid_definition(x[0], 2)}; },
       {normal({5, 7})}},
      {"wide_sigmoid of a number",
       [](auto& x) { return TensorVector{wide_sigmoid(x[0], 2)}; },
       [](auto& x) { return TensorVector{wide_sigmoid_definition(x[0], 2)}; },
       {normal({})}},
      {"add_norm",
       [](auto& x) { return list_of(add_norm(x[0], x[1], x[2], 0.1, false)); },
       [](auto& x) { return list_of(add_norm_definition(x[0], x[1], x[2], 0.1)); },
       {normal({3, 4, 16}), normal({3, 4, 16}), normal({16})}},
      {"gated_mlp",
       [](auto& x) { return TensorVector{gated_mlp(x[0], x[1], x[2], x[3])}; },
       [](auto& x) { return TensorVector{gated_mlp_definition(x[0], x[1], x[2], x[3])}; },
       {normal({2, 5, 8}), normal({16, 8}), normal({16, 8}), normal({8, 16})}},
      // On the CPU this op is its definition: held against one product per block.
      {"block_linear",
       [](auto& x) { return TensorVector{block_linear(x[0], x[1])}; },
       [](auto& x) {
         TensorVector out;
         for (int64_t i = 0; i < x[1].size(0); ++i)
           out.push_back(torch::linear(x[0].narrow(-1, i * 4, 4), x[1][i]));
         return TensorVector{torch::stack(out, -2)};
       },
       {normal({3, 5, 8}), normal({2, 3, 4})}},
  };
}

TEST(Definitions, OpsAreWhatTheySay) {
  for (const auto& p : pairs()) {
    SCOPED_TRACE(p.name);
    expect_same(values_and_gradients(p.inputs, p.op), values_and_gradients(p.inputs, p.definition),
                1e-12);
  }
}

// It stands below autograd and has its gradient beside it.
TEST(Definitions, FewLinear) {
  torch::manual_seed(3);
  const auto normal = [](at::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); };
  const Tensor x = normal({9, 16}), weight = normal({3, 16}), dy = normal({9, 3});
  EXPECT_CLOSE("y", few_linear(x, weight), few_linear_definition(x, weight));
  const TensorVector leaves = {x.clone().requires_grad_(), weight.clone().requires_grad_()};
  const auto want =
      torch::autograd::grad({few_linear_definition(leaves[0], leaves[1])}, leaves, {dy});
  Tensor dx = normal({9, 16});
  for (const bool add : {false, true}) {
    const Tensor dweight = few_linear_backward(dy, x, weight, dx, add);
    EXPECT_CLOSE("dweight", dweight, want[1]);
    EXPECT_CLOSE("dx", dx, add ? 2 * want[0] : want[0]);
  }
}

}  // namespace
}  // namespace lrnn::ops
