#include "base/error.h"
#include "kernels/dispatch.h"
#include "tests/close.h"
#include "tests/ops/diagonal_cases.h"

// Gated linear attention and RWKV-7 against their definitions, in outputs and every gradient.
namespace lrnn {
namespace {

using torch::Tensor;

void expect_diagonal_definition(const DiagonalCase& c, const TensorMap& in, double limit) {
  const kernels::Isa best = kernels::best_isa();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // its matrices are too small to share
  const TensorMap want = diagonal_everything(c, in, true);
  at::set_num_threads(threads);
  for (const auto isa : kernels::kIsas) {
    if (!kernels::has_isa(isa)) continue;
    SCOPED_TRACE(testing::Message() << kernels::name(isa));
    kernels::force_isa(isa);
    const TensorMap got = diagonal_everything(c, in);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, x] : want) EXPECT_CLOSE_TO(name, got.at(name), x, limit);
  }
  kernels::force_isa(best);
}

TEST(Diagonal, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (DiagonalCase c : diagonal_cases()) {
      c.dtype = dtype;
      SCOPED_TRACE(testing::Message() << c);
      expect_diagonal_definition(c, diagonal_inputs(c), tolerance(dtype));
    }
}

TEST(Diagonal, TheStateNeverPassesThroughBFloat16) {
  for (DiagonalCase c : diagonal_cases()) {
    c.dtype = torch::kBFloat16;
    auto in = diagonal_inputs(c);
    const auto [o, state] = run_diagonal(c, in);
    EXPECT_EQ(state.scalar_type(), torch::kFloat32);
    if (c.q) {
      EXPECT_EQ(o.scalar_type(), torch::kBFloat16);
    }
    for (auto& [name, x] : in)
      if (x.defined() && name != "cu_seqlens") x = x.to(torch::kFloat64);
    EXPECT_CLOSE("state", state, run_diagonal(c, in, true).second);
  }
}

TEST(Diagonal, ExtremeDecays) {
  with_extreme_decays(
      [](const auto& c, const auto& in) { expect_diagonal_definition(c, in, 1e-11); });
}

TEST(Diagonal, TheSameBitsForAnyNumberOfThreads) {
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase c{.rwkv7 = rwkv7,
                         .B = 1,
                         .T = 200,
                         .H = 3,
                         .K = 20,
                         .V = 24,
                         .dtype = torch::kFloat32,
                         .lengths = {39, 2, 100, 59}};
    const auto in = diagonal_inputs(c);
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const auto one = diagonal_everything(c, in);
    at::set_num_threads(2);
    auto two = diagonal_everything(c, in);
    at::set_num_threads(threads);
    for (const auto& [name, x] : one) EXPECT_TRUE(torch::equal(x, two[name])) << name;
  }
}

TEST(Diagonal, NoTokensReturnTheState) {
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase c{.rwkv7 = rwkv7, .B = 3, .T = 0};
    auto in = diagonal_inputs(c);
    const auto [o, state] = run_diagonal(c, in);
    EXPECT_TRUE(torch::equal(state, in["state"]));
    EXPECT_EQ(o.sizes(), (std::vector<int64_t>{3, 0, 2, 4}));
    expect_diagonal_definition(c, in, 0);
  }
}

TEST(Diagonal, NonContiguousInputsAndGradients) {
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase c{.rwkv7 = rwkv7, .T = 40, .H = 3, .K = 10, .V = 12};
    const auto in = diagonal_inputs(c);
    auto strided = in;
    for (auto& [name, x] : strided) x = torch::stack({x, x}, -1).select(-1, 1);
    strided["k"] = in.at("k").transpose(1, 2).contiguous().transpose(1, 2);
    const auto [o, state] = run_diagonal(c, strided);
    const auto [want, want_state] = run_diagonal(c, in);
    EXPECT_TRUE(torch::equal(o, want));
    EXPECT_TRUE(torch::equal(state, want_state));
    auto a = in, b = in;
    a["k"] = in.at("k").clone().requires_grad_(), b["k"] = in.at("k").clone().requires_grad_();
    run_diagonal(c, a).first.sum().backward();  // an expanded gradient
    run_diagonal(c, b, true).first.sum().backward();
    EXPECT_CLOSE("dk", a["k"].grad(), b["k"].grad());
  }
}

TEST(Diagonal, PiecesEqualTheWholeToTheBit) {
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase c{.rwkv7 = rwkv7, .T = 70, .K = 21, .V = 24, .dtype = torch::kFloat32};
    const auto in = diagonal_inputs(c);
    const auto part = [&](int64_t begin, int64_t end, const Tensor& state) {
      auto piece = in;
      for (auto& [name, x] : piece) x = name == "state" ? state : x.slice(1, begin, end);
      return run_diagonal(c, piece);
    };
    const auto [o, state] = run_diagonal(c, in);
    for (const int64_t cut : {0, 1, 32, 69, 70}) {
      const auto first = part(0, cut, in.at("state")), second = part(cut, 70, first.second);
      EXPECT_TRUE(torch::equal(torch::cat({first.first, second.first}, 1), o)) << cut;
      EXPECT_TRUE(torch::equal(second.second, state)) << cut;
    }
    auto silent = in;
    silent.erase(c.query());
    const auto [nothing, state_only] = run_diagonal(c, silent);
    EXPECT_FALSE(nothing.defined());
    EXPECT_TRUE(torch::equal(state_only, state));
  }
}

// What the ranges are for. A gate of -1 and a reflection of a = 2 both count modulo two.
TEST(Diagonal, CountsModuloTwoForever) {
  const int64_t T = 20000;
  torch::manual_seed(3);
  const Tensor bit = torch::randint(2, {1, T, 1, 1}, torch::kInt64).to(torch::kFloat32);
  const Tensor want = 1 - 2 * bit.cumsum(1).remainder(2);
  const Tensor none = torch::zeros({1, T, 1, 1}), one = torch::ones({1, T, 1, 1});
  const auto gla = ops::gated_linear_attention({.q = one,
                                                .k = none,
                                                .v = none,
                                                .log_gate = -200 * bit,
                                                .state = torch::ones({1, 1, 1, 1}),
                                                .scale = 1,
                                                .negative = true,
                                                .cu_seqlens = {}});
  EXPECT_TRUE(torch::equal(gla.o, want));
  const auto rwkv7 = ops::rwkv7({.r = one,
                                 .log_w = none,
                                 .k = none,
                                 .v = none,
                                 .kk = one,
                                 .a = 2 * bit,
                                 .state = torch::ones({1, 1, 1, 1}),
                                 .scale = 1,
                                 .cu_seqlens = {}});
  EXPECT_TRUE(torch::equal(rwkv7.o, want));
}

TEST(Diagonal, ErrorsSayWhatWasExpected) {
  const auto expect = [](const DiagonalCase& c, const char* name, const Tensor& x,
                         const std::string& text) {
    auto in = diagonal_inputs(c);
    in[name] = x;
    try {
      run_diagonal(c, in);
      ADD_FAILURE() << "no error, expected: " << text;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
    }
  };
  const DiagonalCase gla{.dtype = torch::kFloat32}, rwkv7{.rwkv7 = true, .dtype = torch::kFloat32};
  expect(gla, "q", torch::zeros({2, 5, 2, 4}),
         "[gated_linear_attention] q must be [2, 5, 2, 3] = [B,T,H,K], got [2, 5, 2, 4]");
  expect(gla, "log_gate", torch::zeros({2, 5, 2}), "log_gate must be [2, 5, 2, 3] = [B,T,H,K]");
  expect(gla, "k", torch::zeros({5, 2, 3}), "k must have 4 dimensions [B,T,H,K], got [5, 2, 3]");
  expect(gla, "v", torch::zeros({2, 5, 2, 4}, torch::kFloat64), "v is Double");
  expect(gla, "cu_seqlens", torch::tensor({0, 5}, torch::kInt64), "cu_seqlens needs B = 1");
  // Without a state, whose number of sequences would be checked first.
  for (const bool rwkv7 : {false, true}) {
    const DiagonalCase packed{.rwkv7 = rwkv7, .B = 1, .T = 5, .state = false};
    expect(packed, "cu_seqlens", torch::tensor({0, 2, 4}, torch::kInt64),
           "cu_seqlens must run from 0 to T = 5, got 0 to 4");
    expect(packed, "cu_seqlens", torch::tensor({0, 4, 2, 5}, torch::kInt64),
           "cu_seqlens must not decrease, got 4 before 2");
  }
  expect(rwkv7, "r", torch::zeros({2, 5, 2, 4}), "[rwkv7] r must be [2, 5, 2, 3] = [B,T,H,K]");
  expect(rwkv7, "log_w", torch::zeros({2, 5, 2}), "log_w must be [2, 5, 2, 3] = [B,T,H,K]");
  expect(rwkv7, "a", Tensor(), "[rwkv7] log_w, k, v, kk and a are needed");
  expect(rwkv7, "state", torch::zeros({2, 2, 4, 3}), "state must be [2, 2, 3, 4] = [B,H,K,V]");
  auto in = diagonal_inputs(rwkv7);
  in["k"].requires_grad_();
  const Tensor o = run_diagonal(rwkv7, in).first;
  const auto first = torch::autograd::grad({o.sum()}, {in["k"]}, {}, true, true);
  EXPECT_THROW(torch::autograd::grad({first[0].sum()}, {in["k"]}), Error);
}

}  // namespace
}  // namespace lrnn
