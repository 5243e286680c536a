#include "base/error.h"
#include "tests/ops/titans_cases.h"

namespace lrnn {
namespace {

using namespace recurrence;

TEST(Titans, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : odd_titans()) {
      SCOPED_TRACE(testing::Message() << dtype << " T " << c.T << " K " << c.K << " V " << c.V);
      expect_definition(kTitans, titans_problem(c, dtype), tolerance(dtype));
    }
}

TEST(Titans, ExtremeGates) { expect_definition(kTitans, extreme_titans(), 1e-11); }

// Either half of the state by itself.
TEST(Titans, AMemoryWithoutMomentumAndMomentumWithoutMemory) {
  for (const char* absent : {"state", "momentum"}) {
    Tensors in = titans_problem({.T = 37, .K = 5, .V = 6});
    in.erase(absent);
    expect_definition(kTitans, in, 1e-11);
  }
}

TEST(Titans, SlopesAgreeWithDifferences) {
  expect_slopes(kTitans, titans_problem({.B = 2, .T = 35, .H = 1, .K = 3, .V = 2}));
}

TEST(Titans, WithoutMomentumAndForgettingItIsDeltaNet) {
  Tensors in = titans_problem({.T = 20, .K = 6, .V = 5, .state = false});
  in["eta"].zero_(), in["alpha"].zero_();
  const Tensors got = kTitans.kernel(in);
  Tensor S = torch::zeros({2, 2, 6, 5}, torch::kFloat64);
  for (int64_t t = 0; t < 20; ++t) {
    const Tensor k = in["k"].select(1, t).unsqueeze(-1), v = in["v"].select(1, t).unsqueeze(-2);
    S = S + in["theta"].select(1, t).view({2, 2, 1, 1}) * k.matmul(v - k.mT().matmul(S));
  }
  EXPECT_CLOSE("state", got.at("final"), S);
}

TEST(Titans, TheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(
      kTitans,
      titans_problem({.B = 1, .T = 200, .H = 3, .K = 20, .V = 24, .lengths = {39, 2, 100, 59}},
                     torch::kFloat32));
}

TEST(Titans, SplitAnywhereIsTheWholeToTheBit) {
  const Tensors in = titans_problem({.T = 70, .K = 21, .V = 24}, torch::kFloat32);
  const auto part = [&](int64_t begin, int64_t end) {
    Tensors out = in;
    for (auto& [name, x] : out)
      if (name != "state" && name != "momentum") x = x.slice(1, begin, end);
    return out;
  };
  const Tensors whole = kTitans.kernel(in);
  for (const int64_t cut : {0, 1, 32, 69, 70}) {
    const Tensors first = kTitans.kernel(part(0, cut));
    Tensors rest = part(cut, 70);
    rest["state"] = first.at("final"), rest["momentum"] = first.at("momentum after");
    Tensors second = kTitans.kernel(rest);
    second["o"] = torch::cat({first.at("o"), second.at("o")}, 1);
    SCOPED_TRACE(cut);
    expect_same_bits(second, whole);
  }
  Tensors silent = in, want = whole;
  silent.erase("q"), want.erase("o");
  expect_same_bits(kTitans.kernel(silent), want);
}

TEST(Titans, NoTokensReturnTheState) {
  const Tensors in = titans_problem({.B = 3, .T = 0});
  const Tensors out = kTitans.kernel(in);
  EXPECT_TRUE(torch::equal(out.at("final"), in.at("state")));
  EXPECT_TRUE(torch::equal(out.at("momentum after"), in.at("momentum")));
  EXPECT_EQ(out.at("o").sizes(), (std::vector<int64_t>{3, 0, 2, 4}));
  expect_definition(kTitans, in, 0);
}

TEST(Titans, StridedInputs) {
  const Tensors in = titans_problem({.T = 40, .H = 3, .K = 10, .V = 12});
  Tensors strided = in;
  for (auto& [name, x] : strided) x = torch::stack({x, x}, -1).select(-1, 1);
  strided["k"] = in.at("k").transpose(1, 2).contiguous().transpose(1, 2);
  expect_same_bits(kTitans.kernel(strided), kTitans.kernel(in));
}

// What it is for. Counting modulo two needs no gate beyond [0,1] (D5 of docs/theory.md).
TEST(Titans, CountsModuloTwoForever) {
  const Tensors in = titans_parity(20000);
  EXPECT_TRUE(torch::equal(kTitans.kernel(in).at("o"), titans_parity_answers(in)));
}

// Without friction a spring of strength 1 has the period 6, and one of strength 2 the period 4.
TEST(Titans, MomentumSwingsForever) {
  for (const int64_t theta : {1, 2}) {
    const Tensor one = torch::ones({1, 6000, 1, 1}), gate = torch::ones({1, 6000, 1});
    const Tensor o = kTitans
                         .kernel({{"q", one},
                                  {"k", one},
                                  {"v", 0 * one},
                                  {"theta", double(theta) * gate},
                                  {"eta", gate},
                                  {"alpha", 0 * gate},
                                  {"state", torch::ones({1, 1, 1, 1})}})
                         .at("o")
                         .flatten();
    const int64_t period = theta == 1 ? 6 : 4;
    const Tensor turn = theta == 1 ? torch::tensor({0.f, -1.f, -1.f, 0.f, 1.f, 1.f})
                                   : torch::tensor({-1.f, -1.f, 1.f, 1.f});
    EXPECT_TRUE(torch::equal(o, turn.repeat({6000 / period}))) << theta;
  }
}

TEST(Titans, ErrorsSayWhatWasExpected) {
  const auto with = [](const char* name, const Tensor& x) -> std::string {
    Tensors in = titans_problem({}, torch::kFloat32);
    in[name] = x;
    try {
      ops::titans(titans_inputs(in));
      return "no error";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(with("theta", torch::zeros({2, 5, 3})),
            "[titans] theta must be [2, 5, 2] = [B,T,H], got [2, 5, 3]");
  EXPECT_EQ(with("momentum", torch::zeros({2, 2, 4, 3})),
            "[titans] momentum must be [2, 2, 3, 4] = [B,H,K,V], got [2, 2, 4, 3]");
  EXPECT_EQ(with("momentum", torch::zeros({2, 2, 3, 4}, torch::kBFloat16)),
            "[titans] momentum is BFloat16, but it must be float32 (float64 for float64 inputs)");
  EXPECT_EQ(with("alpha", Tensor()), "[titans] k, v, theta, eta and alpha are needed");
}

}  // namespace
}  // namespace lrnn
