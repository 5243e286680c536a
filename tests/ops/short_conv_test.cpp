#include "ops/short_conv/short_conv.h"

#include <ATen/Parallel.h>

#include "base/error.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

struct Case {
  int64_t B = 2, T = 5, D = 3, W = 4;
  bool silu = true, bias = true, state = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed when not empty
};

ShortConv random_input(const Case& c, int64_t seed = 0) {
  torch::manual_seed(seed);
  const auto rand = [&](at::IntArrayRef size) {
    return torch::randn(size, torch::kFloat64).to(c.dtype).requires_grad_();
  };
  int64_t T = c.T, B = c.B, S = c.B;
  Tensor cu;
  if (!c.lengths.empty()) {
    std::vector<int64_t> begin = {0};
    for (const int64_t n : c.lengths) begin.push_back(begin.back() + n);
    T = begin.back(), B = 1, S = int64_t(c.lengths.size());
    cu = torch::tensor(begin);
  }
  return {.x = rand({B, T, c.D}),
          .weight = rand({c.D, 1, c.W}),
          .bias = c.bias ? rand({c.D}) : Tensor(),
          .state = c.state ? rand({S, c.D, c.W}) : Tensor(),
          .silu = c.silu,
          .cu_seqlens = cu};
}

// Both results and the gradient of a random function of them by every input.
std::vector<Tensor> everything(const ShortConv& in, ShortConvResult (*f)(const ShortConv&)) {
  const auto out = f(in);
  torch::manual_seed(99);
  const auto wide = torch::kFloat64;
  // One after the other: compilers do not agree which operand of a sum comes first.
  const auto by_state = torch::randn(out.state.sizes(), wide);
  const auto by_y = torch::randn(out.y.sizes(), wide);
  const auto loss = (out.y.to(wide) * by_y).sum() + (out.state.to(wide) * by_state).sum();
  std::vector<Tensor> inputs = {in.x, in.weight};
  if (in.bias.defined()) inputs.push_back(in.bias);
  if (in.state.defined()) inputs.push_back(in.state);
  std::vector<Tensor> all = {out.y, out.state};
  for (auto& g : torch::autograd::grad({loss}, inputs)) all.push_back(g);
  return all;
}

void expect_agreement(const Case& c) {
  SCOPED_TRACE(cat("B", c.B, " T", c.T, " D", c.D, " W", c.W, " silu ", c.silu, " ", c.dtype));
  const auto in = random_input(c);
  auto exact = in;  // the definition in float64, of the same numbers
  for (auto* t : {&exact.x, &exact.weight, &exact.bias, &exact.state})
    if (t->defined()) *t = t->detach().to(torch::kFloat64).requires_grad_();
  const auto got = everything(in, short_conv), want = everything(exact, short_conv_definition);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_CLOSE(cat("result ", i), got[i], want[i]);
}

TEST(ShortConv, AgreesWithTheDefinition) {
  for (const int64_t T : {1, 2, 3, 5, 64, 65})
    for (const int64_t D : {1, 3, 16, 33, 128})
      for (const int64_t W : {1, 2, 3, 4, 5})
        expect_agreement({.T = T, .D = D, .W = W, .silu = (T + D + W) % 2 == 0});
}

TEST(ShortConv, AgreesInEveryType) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16})
    for (const int64_t D : {1, 33, 128})
      for (const int64_t W : {3, 4})
        for (const bool silu : {false, true})
          expect_agreement({.T = 65, .D = D, .W = W, .silu = silu, .dtype = dtype});
}

TEST(ShortConv, BiasAndStateMayBeAbsent) {
  for (const int64_t W : {1, 4, 7}) expect_agreement({.W = W, .bias = false, .state = false});
  expect_agreement({.bias = false});
  expect_agreement({.state = false});
  expect_agreement({.T = 3, .W = 70});  // longer than any table of taps
}

// Long enough for several ranges, whose edges fall inside and between sequences.
TEST(ShortConv, ManyRangesAgree) {
  expect_agreement({.B = 3, .T = 300, .D = 128});
  expect_agreement({.D = 512, .lengths = {1, 31, 32, 33, 7, 0, 2, 90, 64}});
}

TEST(ShortConv, NoTokensLeaveTheState) {
  const auto in = random_input({.T = 0});
  const auto out = short_conv(in);
  EXPECT_EQ(out.y.sizes(), (std::vector<int64_t>{2, 0, 3}));
  EXPECT_TRUE(out.state.equal(in.state));
  EXPECT_FALSE(out.state.is_alias_of(in.state));
  EXPECT_TRUE(
      torch::autograd::grad({out.state.sum()}, {in.state})[0].equal(torch::ones_like(in.state)));
}

TEST(ShortConv, TwoHalvesAreTheWhole) {
  for (const int64_t cut : {0, 1, 2, 3, 8, 10}) {
    const auto in = random_input({.T = 10, .D = 17});
    const auto split = [](const ShortConv& whole, int64_t at) -> ShortConvResult {
      auto first = whole, second = whole;
      first.x = whole.x.slice(1, 0, at), second.x = whole.x.slice(1, at);
      const auto a = short_conv(first);
      second.state = a.state;
      const auto b = short_conv(second);
      return {torch::cat({a.y, b.y}, 1), b.state};
    };
    const auto whole = short_conv(in), halves = split(in, cut);
    EXPECT_TRUE(halves.y.equal(whole.y)) << cut;
    EXPECT_TRUE(halves.state.equal(whole.state)) << cut;
    const auto gradient = [&](const ShortConvResult& out) {
      return torch::autograd::grad({out.y.square().sum() + out.state.sin().sum()},
                                   {in.x, in.weight, in.bias, in.state});
    };
    const auto want = gradient(whole), got = gradient(halves);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_CLOSE(cat("gradient ", i), got[i], want[i]);
  }
}

TEST(ShortConv, StepByStepIsTheWhole) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16}) {
    const auto in = random_input({.T = 9, .D = 20, .dtype = dtype});
    const auto whole = short_conv(in);
    auto step = in;
    std::vector<Tensor> y;
    for (int64_t t = 0; t < 9; ++t) {
      step.x = in.x.slice(1, t, t + 1);
      const auto out = short_conv(step);
      y.push_back(out.y), step.state = out.state;
    }
    EXPECT_TRUE(torch::cat(y, 1).equal(whole.y)) << dtype;
    EXPECT_TRUE(step.state.equal(whole.state)) << dtype;
  }
}

TEST(ShortConv, PackedIsOneByOne) {
  for (const bool state : {false, true})
    expect_agreement({.D = 18, .state = state, .lengths = {3, 1, 0, 6, 2, 4, 64}});
}

TEST(ShortConv, StridesDoNotMatter) {
  const auto in = random_input({.T = 7, .D = 12});
  const auto want = everything(in, short_conv);
  auto other = in;
  // One of three products side by side, and a batch laid out time first.
  for (const bool side_by_side : {true, false}) {
    const Tensor big = side_by_side ? torch::cat({in.x, in.x, in.x}, 2).detach()
                                    : in.x.detach().transpose(0, 1).contiguous().transpose(0, 1);
    other.x = (side_by_side ? big.slice(2, 12, 24) : big).requires_grad_();
    EXPECT_FALSE(other.x.is_contiguous());
    other.weight = in.weight.detach().permute({2, 1, 0}).contiguous().permute({2, 1, 0});
    other.weight.requires_grad_();
    const auto got = everything(other, short_conv);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << i;
  }
}

TEST(ShortConv, SameBitsForAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const auto in = random_input({.B = 5, .T = 200, .D = 96, .dtype = torch::kFloat32});
  at::set_num_threads(1);
  const auto want = everything(in, short_conv);
  for (const int threads : {2, 3, 4}) {
    at::set_num_threads(threads);
    const auto got = everything(in, short_conv);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << threads;
  }
  at::set_num_threads(before);
}

TEST(ShortConv, FiniteDifferences) {
  const auto in = random_input({.T = 5, .D = 3});
  const auto f = [](const ShortConv& a) {
    const auto out = short_conv(a);
    return out.y.sin().sum() + out.state.cos().sum();
  };
  const std::vector<Tensor> inputs = {in.x, in.weight, in.bias, in.state};
  const auto gradient = torch::autograd::grad({f(in)}, inputs);
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor direction = torch::randn_like(inputs[i]);
    const double h = 1e-5;
    inputs[i].add_(direction, h);
    const double above = f(in).item<double>();
    inputs[i].add_(direction, -2 * h);
    const double below = f(in).item<double>();
    inputs[i].add_(direction, h);
    EXPECT_NEAR((above - below) / (2 * h), (gradient[i] * direction).sum().item<double>(), 1e-7);
  }
}

// Rows of a state are rows of x. As decoding hands it on it is not copied, and a gradient lies so.
TEST(ShortConv, StatesLieAsRowsOfX) {
  const auto in = random_input({.dtype = torch::kFloat32});
  const auto rows_first = [](const Tensor& x) { return x.transpose(1, 2).is_contiguous(); };
  const auto out = short_conv(in);
  EXPECT_TRUE(rows_first(out.state));
  EXPECT_TRUE(rows_first(torch::autograd::grad({out.y.sum()}, {in.state})[0]));
  const torch::NoGradGuard no_grad;
  auto next = in;
  const auto of = [&](const Tensor& state) {
    next.state = state;
    return short_conv(next);
  };
  const auto want = of(out.state.contiguous()), got = of(out.state);
  EXPECT_TRUE(got.y.equal(want.y));
  EXPECT_TRUE(got.state.equal(want.state));
  // On the Meta device, too.
  for (auto* x : {&next.x, &next.weight, &next.bias, &next.state}) *x = x->to(torch::kMeta);
  EXPECT_EQ(short_conv(next).state.strides(), out.state.strides());
}

// A cache may have another type; it is read in that of x.
TEST(ShortConv, AStateOfAnotherTypeIsCast) {
  auto in = random_input({.dtype = torch::kFloat32});
  const auto want = short_conv(in);
  in.state = in.state.detach().to(torch::kFloat64).requires_grad_();
  const auto got = short_conv(in);
  EXPECT_TRUE(got.y.equal(want.y));
  EXPECT_EQ(torch::autograd::grad({got.y.sum()}, {in.state})[0].scalar_type(), torch::kFloat64);
}

std::string error_of(const ShortConv& in) {
  try {
    short_conv(in);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(ShortConv, ErrorsSayWhatMustHold) {
  const auto good = random_input({});
  auto in = good;
  in.x = good.x[0];
  EXPECT_EQ(error_of(in), "[short_conv] x must have 3 dimensions [B,T,D], got [5, 3]");
  in = good, in.weight = torch::randn({4, 1, 4}, torch::kFloat64);
  EXPECT_EQ(error_of(in), "[short_conv] weight must be [3, 1, 4] = [D,1,W], got [4, 1, 4]");
  in = good, in.weight = good.weight.to(torch::kFloat32);
  EXPECT_NE(error_of(in).find("weight is Float, but it must have the dtype of x"),
            std::string::npos);
  in = good, in.bias = torch::randn({2}, torch::kFloat64);
  EXPECT_EQ(error_of(in), "[short_conv] bias must be [3] = [D], got [2]");
  in = good, in.state = torch::randn({2, 3, 3}, torch::kFloat64);
  EXPECT_EQ(error_of(in), "[short_conv] state must be [2, 3, 4] = [B,D,W], got [2, 3, 3]");
  in = good, in.cu_seqlens = torch::tensor({0, 5}, torch::kLong);
  EXPECT_EQ(error_of(in), "[short_conv] cu_seqlens needs B = 1, got x [2, 5, 3]");
  in = random_input({.lengths = {2, 3}}), in.cu_seqlens = torch::tensor({0, 6, 5}, torch::kLong);
  EXPECT_EQ(error_of(in), "[short_conv] cu_seqlens must not decrease, got 6 before 5");
  in = good, in.x = good.x.to(torch::kInt), in.weight = good.weight.to(torch::kInt);
  in.bias = in.state = Tensor();
  EXPECT_NE(error_of(in).find("x is Int, but it must be float32, float64, bfloat16 or float16"),
            std::string::npos);
}

}  // namespace
}  // namespace lrnn::ops
