#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "tests/ops/ttt_cases.h"

namespace lrnn {
namespace {

using namespace recurrence;

TEST(Ttt, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : odd_ttt()) {
      SCOPED_TRACE(testing::Message()
                   << dtype << " T " << c.T << " D " << c.D << " mini-batch " << c.mini_batch);
      expect_definition(ttt_op(c.mini_batch), ttt_problem(c, dtype), tolerance(dtype));
    }
}

// The definition has the gradient of the inner loss written out; torch finds the same.
TEST(Ttt, ItsGradientIsThatOfTheInnerLoss) {
  torch::manual_seed(5);
  const auto f64 = torch::TensorOptions(torch::kFloat64);
  const Tensor k = torch::randn(6, f64), v = torch::randn(6, f64), weight = torch::randn(6, f64),
               bias = torch::randn(6, f64), W = torch::randn({6, 6}, f64).requires_grad_(),
               b = torch::randn(6, f64).requires_grad_();
  const Tensor f = k + torch::layer_norm(k.matmul(W) + b, {6}, weight, bias, 1e-6);
  const auto grads = torch::autograd::grad({(f - v).square().sum() / 2}, {W, b});
  const auto row = [](const Tensor& x) { return x.view({1, 1, 1, 6}); };
  const Tensors out = ttt_op(4).definition({{"q", row(k)},
                                            {"k", row(k)},
                                            {"v", row(v)},
                                            {"eta", torch::full({1, 1, 1}, 0.1, f64)},
                                            {"weight", weight.view({1, 6})},
                                            {"bias", bias.view({1, 6})},
                                            {"W", W.detach().expand({1, 2, 1, 6, 6})},
                                            {"b", b.detach().expand({1, 2, 1, 6})}});
  EXPECT_CLOSE("W", out.at("W after")[0][0][0], W - 0.1 * grads[0]);
  EXPECT_CLOSE("b", out.at("b after")[0][0][0], b - 0.1 * grads[1]);
}

TEST(Ttt, ExtremeSteps) {
  for (const Tensors& in : extreme_ttt()) expect_definition(ttt_op(4), in, 1e-9);
}

TEST(Ttt, SlopesAgreeWithDifferences) {
  Tensors in = ttt_problem({.B = 2, .T = 11, .H = 1, .D = 5});
  in.erase("position");  // a count has no slope
  expect_slopes(ttt_op(4), in);
}

TEST(Ttt, TheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(
      ttt_op(16),
      ttt_problem(
          {.B = 1, .T = 200, .H = 3, .D = 20, .mini_batch = 16, .lengths = {39, 2, 100, 59}},
          torch::kFloat32));
}

TEST(Ttt, SplitAnywhereIsTheWhole) {
  const Tensors in = ttt_problem({.T = 40, .D = 9, .mini_batch = 16});
  const Op op = ttt_op(16);
  const auto part = [&](int64_t begin, int64_t end) {
    Tensors out = in;
    for (const char* name : {"q", "k", "v", "eta"}) out[name] = in.at(name).slice(1, begin, end);
    return out;
  };
  const Tensors whole = op.kernel(in);
  for (const int64_t cut : {0, 1, 5, 16, 17, 39, 40}) {
    const Tensors first = op.kernel(part(0, cut));
    Tensors rest = part(cut, 40);
    for (const char* name : {"W", "b", "position"})
      rest[name] = first.at(std::string(name) + " after");
    Tensors second = op.kernel(rest);
    second["o"] = torch::cat({first.at("o"), second.at("o")}, 1);
    for (const auto& [name, x] : whole)
      EXPECT_CLOSE(std::string(name) + " cut at " + std::to_string(cut), second.at(name), x);
  }
}

TEST(Ttt, NoTokensReturnTheState) {
  const Tensors in = ttt_problem({.B = 3, .T = 0});
  const Tensors out = ttt_op(4).kernel(in);
  for (const char* name : {"W", "b", "position"})
    EXPECT_TRUE(torch::equal(out.at(std::string(name) + " after"), in.at(name))) << name;
  expect_definition(ttt_op(4), in, 0);
}

TEST(Ttt, StridedInputs) {
  const Tensors in = ttt_problem({.T = 20, .H = 3, .D = 10});
  Tensors strided = in;
  for (auto& [name, x] : strided) x = torch::stack({x, x}, -1).select(-1, 1);
  strided["k"] = in.at("k").transpose(1, 2).contiguous().transpose(1, 2);
  expect_same_bits(ttt_op(4).kernel(strided), ttt_op(4).kernel(in));
}

// What is not linear can be for: errors of a flip do not add up, they fade.
TEST(Ttt, CountsModuloTwoForever) {
  Tensors in = ttt_parity(20000);
  const Op op = ttt_op(1, kTttParityEps);
  EXPECT_TRUE(ttt_follows(in, op.kernel(in).at("o")));
  in["b"] = in["b"] + torch::tensor({0.1f, 0.f, 0.f, -0.1f});
  EXPECT_TRUE(ttt_follows(in, op.kernel(in).at("o"))) << "from a little beside the cycle";
}

TEST(Ttt, ErrorsSayWhatWasExpected) {
  const auto with = [](const char* name, const Tensor& x, int64_t mini_batch = 4) -> std::string {
    Tensors in = ttt_problem({}, torch::kFloat32);
    in[name] = x;
    try {
      ttt_op(mini_batch).kernel(in);
      return "no error";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(with("W", torch::zeros({2, 2, 4, 4})),
            "[ttt] W must be [2, 2, 2, 4, 4] = [B,2,H,D,D], got [2, 2, 4, 4]");
  EXPECT_EQ(with("position", torch::zeros(3)), "[ttt] position must be [2] = [B], got [3]");
  EXPECT_EQ(with("bias", torch::zeros({2, 5})), "[ttt] bias must be [2, 4] = [H,D], got [2, 5]");
  EXPECT_EQ(with("b", Tensor(), 65), "[ttt] mini_batch must be 1 to 64 tokens, got 65");
}

}  // namespace
}  // namespace lrnn
