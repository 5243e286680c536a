#include "base/error.h"
#include "tests/ops/slstm_cases.h"

namespace lrnn {
namespace {

using namespace recurrence;

TEST(Slstm, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto& c : kSlstmCases) {
      SCOPED_TRACE(testing::Message() << dtype << " T " << c.T << " D " << c.D);
      expect_definition(kSlstm, slstm_problem(c, dtype), tolerance(dtype));
    }
}

TEST(Slstm, GoldenCell) {  // chomsky 5.5
  const auto f64 = [](std::vector<double> x, torch::IntArrayRef shape) {
    return torch::tensor(x, torch::kFloat64).view(shape);
  };
  const Tensor wx = f64({.5,  -.3, 1,   2,  .8,  -.6, .1, .4, 1.5, .2, .5, -1,
                         -.9, .3,  -.2, .7, -.4, .9,  2,  0,  .6,  .6, .3, -.5},
                        {1, 3, 1, 4, 2});
  const Tensor R =
      f64({.1, .2, -.3, .4, .5, -.6, .7, .8, -.2, .1, .3, .2, .4, .1, -.5, .6}, {1, 2, 4, 2});
  const Tensor bias = f64({0, 0, 5, -7, 0, 0, 0, 0}, {1, 4, 2});
  const auto out = ops::slstm({.wx = wx, .R = R, .bias = bias, .state = {}, .cu_seqlens = {}});
  const Tensor h = f64({.348605, -.321525, -.195823, .040181, -.150216, .214263}, {1, 3, 1, 2});
  const Tensor last = f64(
      {-.150216, .214263, -.410382, .617871, 1.463363, 1.000454, 1.598316, .864854}, {1, 4, 1, 2});
  EXPECT_LE((out.h - h).abs().max().item<double>(), 6e-7);
  EXPECT_LE((out.state - last).abs().max().item<double>(), 6e-7);
}

TEST(Slstm, SlopesAgreeWithDifferences) {
  expect_slopes(kSlstm, slstm_problem({.B = 2, .T = 35, .H = 1, .D = 3}));
}

TEST(Slstm, TheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(
      kSlstm, slstm_problem({.B = 1, .T = 200, .H = 4, .D = 32, .lengths = {3, 90, 60, 47}},
                            torch::kFloat32));
  expect_same_bits_on_any_threads(
      kSlstm, slstm_problem({.B = 50, .T = 9, .H = 2, .D = 9}, torch::kFloat32));
}

TEST(Slstm, SplitAnywhereIsTheWholeToTheBit) {
  const Tensors in = slstm_problem({.B = 2, .T = 40, .H = 2, .D = 9}, torch::kFloat32);
  const Tensors whole = kSlstm.kernel(in);
  for (const int64_t cut : {0, 1, 17, 39, 40}) {
    Tensors a = in, b = in;
    a["wx"] = in.at("wx").slice(1, 0, cut), b["wx"] = in.at("wx").slice(1, cut);
    const Tensors first = kSlstm.kernel(a);
    b["state"] = first.at("final");
    const Tensors second = kSlstm.kernel(b);
    EXPECT_TRUE(torch::equal(torch::cat({first.at("h"), second.at("h")}, 1), whole.at("h"))) << cut;
    EXPECT_TRUE(torch::equal(second.at("final"), whole.at("final"))) << cut;
  }
}

TEST(Slstm, GatesFarOutOfRangeStayFinite) {
  Tensors in = slstm_problem({.B = 1, .T = 60, .H = 1, .D = 8, .state = false}, torch::kFloat32);
  in["wx"] = 100 * in["wx"];
  for (const auto& [name, x] : everything(in, kSlstm.kernel))
    EXPECT_TRUE(x.isfinite().all().item<bool>()) << name;
  EXPECT_LE(kSlstm.kernel(in).at("h").abs().max().item<double>(), 1);
}

TEST(Slstm, NoTokensReturnTheState) {
  const Tensors in = slstm_problem({.B = 3, .T = 0, .H = 2, .D = 4});
  const Tensors out = kSlstm.kernel(in);
  EXPECT_TRUE(torch::equal(out.at("final"), in.at("state")));
  EXPECT_EQ(out.at("h").sizes(), (std::vector<int64_t>{3, 0, 2, 4}));
  expect_definition(kSlstm, in, 0);
}

TEST(Slstm, StridedInputs) {
  const Tensors in = slstm_problem({.B = 2, .T = 6, .H = 3, .D = 8});
  Tensors strided = in;
  strided["wx"] = in.at("wx").permute({2, 0, 3, 1, 4}).contiguous().permute({1, 3, 0, 2, 4});
  strided["R"] = in.at("R").transpose(1, 3).contiguous().transpose(1, 3);
  strided["state"] = torch::stack({in.at("state"), in.at("state")}, -1).select(-1, 0);
  ASSERT_FALSE(strided["wx"].is_contiguous());
  expect_same_bits(kSlstm.kernel(strided), kSlstm.kernel(in));
  strided["wx"] = torch::stack({in.at("wx"), in.at("wx")}, -1).select(-1, 0);
  expect_same_bits(kSlstm.kernel(strided), kSlstm.kernel(in));
}

std::string slstm_error(const Tensors& in) {
  try {
    ops::slstm(slstm_inputs(in));
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Slstm, ErrorsSayWhatWasExpected) {
  const auto with = [](const char* name, const Tensor& x) {
    Tensors in = slstm_problem({.B = 2, .T = 5, .H = 2, .D = 3}, torch::kFloat32);
    in[name] = x;
    return slstm_error(in);
  };
  EXPECT_EQ(with("R", torch::zeros({2, 3, 4, 4})),
            "[slstm] R must be [2, 3, 4, 3] = [H,D,4,D], got [2, 3, 4, 4]");
  EXPECT_EQ(with("bias", torch::zeros({2, 12})),
            "[slstm] bias must be [2, 4, 3] = [H,4,D], got [2, 12]");
  EXPECT_EQ(with("state", torch::zeros({2, 2, 3})),
            "[slstm] state must be [2, 4, 2, 3] = [B,4,H,D], got [2, 2, 3]");
  EXPECT_EQ(with("wx", torch::zeros({2, 5, 2, 3})),
            "[slstm] wx must have 5 dimensions [B,T,H,4,D], got [2, 5, 2, 3]");
  EXPECT_EQ(with("R", torch::zeros({2, 3, 4, 3}, torch::kFloat64)),
            "[slstm] R is Double, but it must have the dtype of wx, or float32 beside bfloat16");
  EXPECT_EQ(with("state", torch::zeros({2, 4, 2, 3}, torch::kBFloat16)),
            "[slstm] state is BFloat16, but it must be float32 (float64 for float64 inputs)");
  EXPECT_EQ(with("cu_seqlens", torch::tensor({0, 5})),
            "[slstm] cu_seqlens needs B = 1, got wx [2, 5, 2, 4, 3]");
  Tensors packed = slstm_problem({.B = 1, .T = 5, .H = 2, .D = 3, .lengths = {2, 3}});
  packed["cu_seqlens"] = torch::tensor({0, 2, 4});
  EXPECT_EQ(slstm_error(packed), "[slstm] cu_seqlens must run from 0 to T = 5, got 0 to 4");
  packed["cu_seqlens"] = torch::tensor({0, 6, 5});
  EXPECT_EQ(slstm_error(packed), "[slstm] cu_seqlens must not decrease, got 6 before 5");
}

}  // namespace
}  // namespace lrnn
