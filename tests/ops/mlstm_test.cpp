#include "base/error.h"
#include "tests/ops/mlstm_cases.h"

namespace lrnn {
namespace {

using namespace recurrence;

TEST(Mlstm, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : kMlstmCases) {
      SCOPED_TRACE(testing::Message() << dtype << " T " << c.T << " K " << c.K << " V " << c.V);
      // h divides by |n . q|, which may nearly vanish: that magnifies the rounding of single
      // floats.
      const double limit = dtype == torch::kFloat64   ? 1e-10
                           : dtype == torch::kFloat32 ? 1e-4
                                                      : 2e-2;
      expect_definition(kMlstm, mlstm_problem(c, dtype), limit);
    }
}

TEST(Mlstm, GoldenCell) {  // chomsky 5.5
  const auto f64 = [](std::vector<double> x, torch::IntArrayRef shape) {
    return torch::tensor(x, torch::kFloat64).view(shape);
  };
  const auto out = ops::mlstm({.q = f64({1, .5, .2, -1, .7, .7}, {1, 3, 1, 2}),
                               .k = f64({.6, .8, 1, -.5, -.3, .9}, {1, 3, 1, 2}),
                               .v = f64({1, -1, .5, 2, -1.5, .25}, {1, 3, 1, 2}),
                               .i = f64({.1, -.2, 1.5}, {1, 3, 1}),
                               .f = f64({3, .5, 2}, {1, 3, 1}),
                               .state = {},
                               .scale = {},
                               .cu_seqlens = {}});
  const Tensor h = f64({.781473, -.781473, -.128151, 1.141277, -.770918, .139845}, {1, 3, 1, 2});
  EXPECT_LE((out.h - h).abs().max().item<double>(), 6e-7);
  EXPECT_NEAR(out.state.m.item<double>(), 1.5, 1e-12);
}

// The published parallel form: all pairs of positions at once.
TEST(Mlstm, EqualsTheParallelForm) {
  const Tensors in = mlstm_problem({.B = 1, .T = 90, .H = 1, .K = 6, .V = 4, .state = false});
  const auto row = [&](const char* name) { return in.at(name).squeeze(2).squeeze(0); };  // [T,..]
  const Tensor F = torch::log_sigmoid(row("f")).cumsum(0), i = row("i");
  const Tensor allowed = torch::ones({90, 90}, torch::kBool).tril();
  const Tensor logD =
      (F.unsqueeze(1) - F.unsqueeze(0) + i.unsqueeze(0))
          .masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity());
  const Tensor m = std::get<0>(logD.max(1, true));
  const Tensor w = row("q").matmul(row("k").t()) / std::sqrt(6.0) * (logD - m).exp();
  const Tensor size = torch::maximum(w.sum(1, true).abs(), (-m).exp()) + 1e-6;
  const Tensor h = w.matmul(row("v")) / size;
  EXPECT_CLOSE("kernel", ops::mlstm(mlstm_inputs(in)).h.view({90, 4}), h);
  EXPECT_CLOSE("definition", ops::mlstm_definition(mlstm_inputs(in)).h.view({90, 4}), h);
}

TEST(Mlstm, SlopesAgreeWithDifferences) {
  expect_slopes(kMlstm, mlstm_problem({.B = 1, .T = 67, .H = 1, .K = 3, .V = 2}));
}

TEST(Mlstm, TheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(
      kMlstm,
      mlstm_problem({.B = 1, .T = 400, .H = 4, .K = 32, .V = 32, .lengths = {3, 290, 60, 47}},
                    torch::kFloat32));
}

TEST(Mlstm, SplitAnywhereIsTheWhole) {
  const Tensors in = mlstm_problem({.B = 2, .T = 150, .H = 2, .K = 9, .V = 7});
  const Tensors whole = kMlstm.kernel(in);
  const auto part = [&](int64_t begin, int64_t end, Tensors state) {
    Tensors out = {{"C", state.at("C")}, {"n", state.at("n")}, {"m", state.at("m")}};
    for (const char* name : {"q", "k", "v", "i", "f"}) out[name] = in.at(name).slice(1, begin, end);
    return out;
  };
  for (const int64_t cut : {0, 1, 64, 99, 150}) {
    const Tensors first = kMlstm.kernel(part(0, cut, in));
    const Tensors second = kMlstm.kernel(
        part(cut, 150,
             {{"C", first.at("final C")}, {"n", first.at("final n")}, {"m", first.at("final m")}}));
    EXPECT_CLOSE("h", torch::cat({first.at("h"), second.at("h")}, 1), whole.at("h"));
    for (const char* name : {"final C", "final n", "final m"})
      EXPECT_CLOSE(name, second.at(name), whole.at(name));
  }
}

// Long stretches that forget almost everything, then gates that keep everything, and inputs whose
// exponentials no float holds.
TEST(Mlstm, ExtremeGates) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32}) {
    Tensors in = mlstm_problem({.B = 1, .T = 200, .H = 1, .K = 4, .V = 4}, dtype);
    in["f"].slice(1, 20, 90).fill_(-30), in["f"].slice(1, 90, 140).fill_(100);
    in["i"].slice(1, 60, 61).fill_(300), in["i"].slice(1, 150, 170).fill_(-300);
    expect_definition(kMlstm, in, dtype == torch::kFloat64 ? 1e-10 : 1e-4);
  }
}

TEST(Mlstm, NoTokensReturnTheState) {
  const Tensors in = mlstm_problem({.B = 3, .T = 0, .H = 2, .K = 4, .V = 5});
  const Tensors out = kMlstm.kernel(in);
  for (const char* name : {"C", "n", "m"})
    EXPECT_TRUE(torch::equal(out.at(cat("final ", name)), in.at(name))) << name;
  EXPECT_EQ(out.at("h").sizes(), (std::vector<int64_t>{3, 0, 2, 5}));
  expect_definition(kMlstm, in, 0);
  // The beginning of time, handed on, is still the beginning of time.
  Tensors fresh = mlstm_problem({.B = 1, .T = 4, .H = 1, .K = 3, .V = 2, .state = false});
  Tensors none = fresh;
  for (auto& [name, x] : none) x = x.slice(1, 0, 0);
  const Tensors empty = kMlstm.kernel(none);
  Tensors later = fresh;
  for (const char* name : {"C", "n", "m"}) later[name] = empty.at(cat("final ", name));
  expect_same_bits(kMlstm.kernel(later), kMlstm.kernel(fresh));
}

TEST(Mlstm, StridedInputs) {
  const Tensors in = mlstm_problem({.B = 2, .T = 6, .H = 3, .K = 8, .V = 4});
  Tensors strided = in;
  strided["q"] = in.at("q").transpose(1, 2).contiguous().transpose(1, 2);
  strided["k"] = torch::stack({in.at("k"), in.at("k")}, -1).select(-1, 0);
  strided["v"] = torch::cat({in.at("v"), in.at("v")}, -1).slice(-1, 0, 4);
  strided["i"] = in.at("i").transpose(1, 2).contiguous().transpose(1, 2);
  strided["C"] = in.at("C").transpose(2, 3).contiguous().transpose(2, 3);
  expect_same_bits(kMlstm.kernel(strided), kMlstm.kernel(in));
}

TEST(Mlstm, ErrorsSayWhatWasExpected) {
  const auto with = [](const char* name, const Tensor& x) -> std::string {
    Tensors in = mlstm_problem({.B = 2, .T = 5, .H = 2, .K = 3, .V = 4}, torch::kFloat32);
    in[name] = x;
    try {
      ops::mlstm(mlstm_inputs(in));
      return "no error";
    } catch (const Error& e) {
      return e.what();
    }
  };
  EXPECT_EQ(with("k", torch::zeros({2, 5, 2, 4})),
            "[mlstm] k must be [2, 5, 2, 3] = [B,T,H,K], got [2, 5, 2, 4]");
  EXPECT_EQ(with("i", torch::zeros({2, 5})), "[mlstm] i must be [2, 5, 2] = [B,T,H], got [2, 5]");
  EXPECT_EQ(with("C", torch::zeros({2, 2, 4, 3})),
            "[mlstm] C must be [2, 2, 3, 4] = [B,H,K,V], got [2, 2, 4, 3]");
  EXPECT_EQ(with("n", Tensor()), "[mlstm] a state is C, n and m together");
  EXPECT_EQ(with("v", torch::zeros({2, 5, 2, 4}, torch::kFloat64)),
            "[mlstm] v is Double, but it must have the dtype of q");
  EXPECT_EQ(with("cu_seqlens", torch::tensor({0, 5})),
            "[mlstm] cu_seqlens needs B = 1, got q [2, 5, 2, 3]");
}

}  // namespace
}  // namespace lrnn
