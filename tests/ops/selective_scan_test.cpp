#include "ops/selective_scan/selective_scan.h"

#include "base/error.h"
#include "kernels/dispatch.h"
#include "tests/close.h"
#include "tests/ops/selective_scan_cases.h"

// The kernel against the definition, in outputs and every gradient.
namespace lrnn {
namespace {

using torch::Tensor;

void expect_scan_definition(const ops::SelectiveScan& in, double limit) {
  const kernels::Isa best = kernels::best_isa();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const NamedTensors want = scan_everything(scan_in_double(in), ops::selective_scan_definition);
  at::set_num_threads(threads);
  for (const auto isa : kernels::kIsas) {
    if (!kernels::has_isa(isa)) continue;
    SCOPED_TRACE(testing::Message() << kernels::name(isa));
    kernels::force_isa(isa);
    const NamedTensors got = scan_everything(in, ops::selective_scan);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_CLOSE_TO(got[i].first, got[i].second, want[i].second, limit);
  }
  kernels::force_isa(best);
}

TEST(SelectiveScan, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (ScanCase c : kScanCases) {
      c.dtype = dtype;
      SCOPED_TRACE(testing::Message() << c << " " << dtype);
      expect_scan_definition(make_scan(c), tolerance(dtype));
    }
}

TEST(SelectiveScan, TheStateNeverPassesThroughBFloat16) {
  const auto in = make_scan({.T = 80, .D = 20, .negative = true, .dtype = torch::kBFloat16});
  const auto out = ops::selective_scan(in);
  EXPECT_EQ(out.y.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(out.state.scalar_type(), torch::kFloat32);
  EXPECT_CLOSE("state", out.state, ops::selective_scan_definition(scan_in_double(in)).state);
}

// Steps so large that the transition is 0 (or -1), so small that it is 1, and beyond the softplus'
// bend.
TEST(SelectiveScan, ExtremeSteps) {
  for (const bool negative : {false, true}) {
    auto in = make_scan({.T = 70, .D = 18, .negative = negative});
    in.delta.select(1, 10).fill_(500), in.delta.select(1, 11).fill_(21);
    in.delta.select(1, 40).fill_(-800), in.delta.select(1, 64).fill_(19);
    SCOPED_TRACE(negative);
    expect_scan_definition(in, 1e-11);
    if (!negative) continue;
    in.B.zero_();
    const auto before = ops::selective_scan(in).state;
    in.delta.select(1, 10).fill_(-800);  // one reflection less
    EXPECT_CLOSE("-h", before, -ops::selective_scan(in).state);
  }
}

TEST(SelectiveScan, TheSameBitsForAnyNumberOfThreads) {
  const auto in = make_scan({.B = 1,
                             .T = 200,
                             .D = 150,
                             .N = 16,
                             .negative = true,
                             .dtype = torch::kFloat32,
                             .lengths = {39, 2, 100, 59}});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = scan_everything(in, ops::selective_scan);
  at::set_num_threads(2);
  const auto two = scan_everything(in, ops::selective_scan);
  at::set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_TRUE(torch::equal(one[i].second, two[i].second)) << one[i].first;
}

TEST(SelectiveScan, NoTokensReturnTheState) {
  const auto in = make_scan({.B = 3, .T = 0});
  const auto out = ops::selective_scan(in);
  EXPECT_TRUE(torch::equal(out.state, in.state));
  EXPECT_EQ(out.y.sizes(), (std::vector<int64_t>{3, 0, 3}));
  expect_scan_definition(in, 0);
  auto none = make_scan({.B = 0, .T = 4});
  EXPECT_EQ(ops::selective_scan(none).y.sizes(), none.u.sizes());
}

TEST(SelectiveScan, NonContiguousInputs) {
  const auto in = make_scan({.T = 40, .D = 20, .N = 6});
  auto strided = in;
  for (auto& [name, x] : scan_tensors(strided)) *x = torch::stack({*x, *x}, -1).select(-1, 1);
  strided.B = torch::cat({in.B, in.C}, -1).narrow(-1, 0, 6);
  strided.C = torch::cat({in.B, in.C}, -1).narrow(-1, 6, 6);
  strided.u = in.u.transpose(0, 1).contiguous().transpose(0, 1);
  const auto want = ops::selective_scan(in), got = ops::selective_scan(strided);
  EXPECT_TRUE(torch::equal(got.y, want.y));
  EXPECT_TRUE(torch::equal(got.state, want.state));
  auto a = in, b = in;
  a.u = in.u.clone().requires_grad_(), b.u = in.u.clone().requires_grad_();
  ops::selective_scan(a).y.sum().backward();  // an expanded gradient
  ops::selective_scan_definition(b).y.sum().backward();
  EXPECT_CLOSE("du", a.u.grad(), b.u.grad());
}

TEST(SelectiveScan, PiecesEqualTheWholeToTheBit) {
  const auto in = make_scan({.T = 70, .D = 21, .N = 6, .negative = true, .dtype = torch::kFloat32});
  expect_pieces_to_be_the_whole(in, ops::selective_scan);
  const auto whole = ops::selective_scan(in);
  Tensor h = in.state;
  for (int64_t t = 0; t < 70; ++t) h = ops::selective_scan(scan_piece(in, t, t + 1, h)).state;
  EXPECT_TRUE(torch::equal(h, whole.state)) << "token by token";
  auto silent = in;
  silent.C = silent.D = silent.z = Tensor();
  const auto state_only = ops::selective_scan(silent);
  EXPECT_FALSE(state_only.y.defined());
  EXPECT_TRUE(torch::equal(state_only.state, whole.state));
}

TEST(SelectiveScan, CountsModuloTwoForever) {
  const auto [in, want] = parity_forever();
  EXPECT_TRUE(torch::equal(ops::selective_scan(in).y, want));
}

// chomsky.md 5.5
TEST(SelectiveScan, GoldenNumbers) {
  const auto f64 = [](std::vector<double> x, std::vector<int64_t> sizes) {
    return torch::tensor(x, torch::kFloat64).view(sizes).requires_grad_();
  };
  const auto expect = [](const char* name, const Tensor& got, const std::vector<double>& want) {
    const Tensor w = torch::tensor(want, torch::kFloat64);
    EXPECT_LE((got.detach().flatten() - w).abs().max().item<double>(), 5.1e-7) << name;
  };
  for (const bool negative : {false, true}) {
    ops::SelectiveScan in;
    in.u = f64({1, -.5, 2}, {1, 3, 1}), in.delta = f64({.3, 1.2, -.4}, {1, 3, 1});
    in.A = f64({-1, -2}, {1, 2}), in.B = f64({.5, -1, 1, .25, -.75, .5}, {1, 3, 2});
    in.C = f64({1, .5, -.5, 1, .25, 2}, {1, 3, 2}), in.D = f64({1}, {1});
    in.z = f64({.2, -1, .5}, {1, 3, 1}), in.delta_bias = f64({.1}, {1}), in.negative = negative;
    const auto out = ops::selective_scan(in);
    out.y.sum().backward();
    const auto pick = [&](std::vector<double> zero_one, std::vector<double> minus_one) {
      return negative ? minus_one : zero_one;
    };
    expect("y", out.y, pick({.109967, .107075, .824588}, {.109967, -.175450, .756127}));
    expect("h", out.state, pick({-1.217981, .476973}, {-.985104, .337879}));
    expect("dA", in.A.grad(), pick({.010325, -.022601}, {-.007105, .207010}));
    expect("ddelta", in.delta.grad(),
           pick({.013231, -.082103, .269017}, {-.286327, -.095884, .031870}));
    expect("du", in.u.grad(), pick({.130144, -.017323, .451412}, {-.326690, -.229020, .451412}));
    if (!negative) continue;
    expect("dB", in.B.grad(), {.024169, .448741, -.112536, .370302, .086266, .690127});
    expect("dC", in.C.grad(), {.050201, -.100401, .277407, -.171218, -.306594, .105158});
  }
}

void expect_scan_error(const ops::SelectiveScan& in, const std::string& text) {
  try {
    ops::selective_scan(in);
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(SelectiveScan, ErrorsSayWhatWasExpected) {
  const auto good = make_scan({.dtype = torch::kFloat32});
  auto in = good;
  in.delta = torch::zeros({2, 5, 2});
  expect_scan_error(in, "[selective_scan] delta must be [2, 5, 3] = [B,T,D], got [2, 5, 2]");
  in = good, in.u = torch::zeros({5, 3});
  expect_scan_error(in, "u must have 3 dimensions [B,T,D], got [5, 3]");
  in = good, in.A = torch::zeros({4, 3});
  expect_scan_error(in, "A must be [3, 3] = [D,N], got [4, 3]");
  in = good, in.B = in.B.to(torch::kFloat64);
  expect_scan_error(in, "B is Double, but it must have the dtype of u");
  in = good, in.state = in.state.to(torch::kBFloat16);
  expect_scan_error(in, "state is BFloat16, but it must be float32");
  in = good, in.C = Tensor();
  expect_scan_error(in, "D and z shape the output, which needs C");
  in = good, in.cu_seqlens = torch::tensor({0, 5}, torch::kInt64);
  expect_scan_error(in, "cu_seqlens needs B = 1");
  in = good, in.u.requires_grad_();
  const auto out = ops::selective_scan(in);
  const auto first = torch::autograd::grad({out.y.sum()}, {in.u}, {}, true, true);
  EXPECT_THROW(torch::autograd::grad({first[0].sum()}, {in.u}), Error);
}

}  // namespace
}  // namespace lrnn
