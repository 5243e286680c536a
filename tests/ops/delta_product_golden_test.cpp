#include <cmath>
#include <functional>

#include "ops/delta_product/delta_product.h"
#include "tests/close.h"

// Numbers worked out elsewhere: closed-form inputs, printed digits, and a recurrence that can be
// followed by hand.
namespace lrnn {
namespace {

using torch::Tensor;

Tensor fill(std::vector<int64_t> sizes, const std::function<double(int64_t, int64_t)>& f) {
  Tensor x = torch::empty({sizes[0], sizes[1]}, torch::kFloat64);
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (int64_t j = 0; j < sizes[1]; ++j) x[i][j] = f(i, j);
  return x.requires_grad_();
}
Tensor table(std::vector<double> values, std::vector<int64_t> sizes) {
  return torch::tensor(values, torch::kFloat64).view(sizes);
}
Tensor unit(const Tensor& x) { return x * torch::rsqrt(x.square().sum(-1, true) + 1e-6); }

void expect_digits(const char* name, const Tensor& got, const Tensor& want, double digits) {
  EXPECT_LE((got.detach().view_as(want) - want).abs().max().item<double>(), digits) << name;
}

TEST(DeltaProductGolden, OperatorWithTwoHouseholdersAndAGate) {
  const Tensor q = fill({3, 3}, [](int64_t t, int64_t i) { return std::sin(1 + .7 * t + .3 * i); });
  const Tensor k =
      fill({6, 3}, [](int64_t p, int64_t i) { return std::cos(.5 + .9 * p - .4 * i); });
  const Tensor v =
      fill({6, 2}, [](int64_t p, int64_t c) { return std::sin(.2 + .6 * p + 1.1 * c); });
  const Tensor beta =
      fill({6, 1}, [](int64_t p, int64_t) { return 2 / (1 + std::exp(-(.4 * p - .5))); });
  const Tensor gate = fill({3, 1}, [](int64_t t, int64_t) { return -.1 * (t + 1); });
  const Tensor S0 = fill({3, 2}, [](int64_t i, int64_t c) { return .1 * (i + 1) * (c ? -1 : 1); });
  const Tensor dO = fill({3, 2}, [](int64_t t, int64_t c) { return std::cos(.3 * t + .5 * c); });
  const Tensor dS = fill({3, 2}, [](int64_t i, int64_t c) { return .05 * (i - c); });
  const auto out = ops::delta_product({.q = unit(q).view({1, 3, 1, 3}),
                                       .k = unit(k).view({1, 3, 2, 1, 3}),
                                       .v = v.view({1, 3, 2, 1, 2}),
                                       .beta = beta.view({1, 3, 2, 1}),
                                       .log_gate = gate.view({1, 3, 1}),
                                       .state = S0.view({1, 1, 3, 2}),
                                       .scale = {},
                                       .cu_seqlens = {}});
  const Tensor loss =
      (out.o.view({3, 2}) * dO.detach()).sum() + (out.state.view({3, 2}) * dS.detach()).sum();
  loss.backward();
  const double d = 5.1e-11;
  expect_digits(
      "o", out.o,
      table({0.3656534511, 0.5790373023, -0.5843380079, 0.0147503900, -0.5431410576, 0.0535666977},
            {3, 2}),
      d);
  expect_digits("S", out.state,
                table({-0.6088677911, -0.2695804932, -0.6411451246, 0.3226955136, -0.5548706823,
                       0.8466959361},
                      {3, 2}),
                d);
  expect_digits("loss", loss, table({-0.1298627504}, {}), d);
  expect_digits("dq", q.grad(),
                table({-0.0829430440, 0.0026855894, 0.0672354438, -0.4195565395, 0.0397448683,
                       0.5094765491, -0.0097375956, 0.0027573989, 0.0382531651},
                      {3, 3}),
                d);
  expect_digits(
      "dk", k.grad(),
      table({0.0868901735, -0.0045089777, -0.0751220253, 0.1027487341, 0.0161130248, -0.0317080631,
             0.1117991454, -0.3845139867, -0.7043006036, -0.4422929693, 0.0470839706, 0.5386200546,
             -0.5255956033, -0.0826674259, 0.3769546117, 0.6164572912, 0.4508496604, 0.2535424253},
            {6, 3}),
      d);
  expect_digits("dv", v.grad(),
                table({0.1087014193, 0.0925010278, 0.2874574579, 0.3192114477, -0.0323733771,
                       0.0311994389, -0.6134774916, -0.4879683197, -0.6763944324, -0.2930307784,
                       -0.0308831817, -0.0415255440},
                      {6, 2}),
                d);
  expect_digits(
      "dbeta", beta.grad(),
      table({0.1398324839, 0.2777625242, -0.0017628922, -0.0815955097, 0.0248101881, -0.0106397170},
            {6, 1}),
      d);
  expect_digits("dlog_gate", gate.grad(),
                table({-0.0039369064, -0.2587384568, -0.3021296227}, {3, 1}), d);
  expect_digits(
      "dS0", S0.grad(),
      table({0.2005798510, 0.1632573617, 0.0067060654, 0.0082644098, -0.1366427635, -0.1121178086},
            {3, 2}),
      d);
}

struct Rule {
  double range;
  std::vector<double> beta, o, S, dbeta, dv, dk, dq;
};

TEST(DeltaProductGolden, DeltaRuleInBothRanges) {
  const std::vector<Rule> rules = {{1,
                                    {.731059, .377541, .952574},
                                    {.462362, -.462362, -.284175, .693921, -.004592, .040148},
                                    {1.110819, -.091117, -1.120003, .171412},
                                    {0, 2.176824, -.184233},
                                    {.461072, .461072, .328736, .328736, .301230, .301230},
                                    {0, 0, .692723, -.452244, -.531783, -.150333},
                                    {0, 0, .596944, -.298472, .721038, -.670755}},
                                   {2,
                                    {1.462117, .755081, 1.905148},
                                    {.924723, -.924723, -.611218, 1.430710, -.264646, .737842},
                                    {2.366697, -.729378, -2.895990, 2.205061},
                                    {0, 2.709328, .026818},
                                    {.543397, .543397, .818305, .818305, .602460, .602460},
                                    {0, 0, 1.565263, -1.443940, -.936417, .589385},
                                    {0, 0, 1.193888, -.596944, 1.157760, -.488560}}};
  for (const Rule& rule : rules) {
    const Tensor q = unit(table({1, .5, .2, -1, .7, .7}, {1, 3, 1, 2})).requires_grad_();
    const Tensor k = unit(table({.6, .8, 1, -.5, -.3, .9}, {1, 3, 1, 1, 2})).requires_grad_();
    const Tensor v = table({1, -1, .5, 2, -1.5, .25}, {1, 3, 1, 1, 2}).requires_grad_();
    const Tensor beta =
        (rule.range * torch::sigmoid(table({1, -.5, 3}, {1, 3, 1, 1}))).requires_grad_();
    const auto out = ops::delta_product({.q = q,
                                         .k = k,
                                         .v = v,
                                         .beta = beta,
                                         .log_gate = {},
                                         .state = {},
                                         .scale = {},
                                         .cu_seqlens = {}});
    out.o.sum().backward();
    const double d = 5.1e-7;
    expect_digits("beta", beta, table(rule.beta, {3}), d);
    expect_digits("o", out.o, table(rule.o, {6}), d);
    expect_digits("S", out.state, table(rule.S, {4}), d);
    expect_digits("dbeta", beta.grad(), table(rule.dbeta, {3}), d);
    expect_digits("dv", v.grad(), table(rule.dv, {6}), d);
    expect_digits("dk", k.grad(), table(rule.dk, {6}), d);
    expect_digits("dq", q.grad(), table(rule.dq, {6}), d);
  }
}

// S_5 in one layer: each token's permutation as at most four reflections of the vector (1..5). The
// state must stay the running product, exactly, however long. With keys of width 5, and of 32,
// which the kernel takes two at a time.
TEST(DeltaProductGolden, PermutationsAreExactForAHundredThousandTokens) {
  constexpr int64_t n = 5, N = 4, T = 100000, wide = 32;
  Tensor k = torch::zeros({1, T, N, 1, n}), beta = torch::zeros({1, T, N, 1});
  Tensor want = torch::empty({T, n});
  auto at_k = k.accessor<float, 5>();
  auto at_beta = beta.accessor<float, 4>();
  auto at_want = want.accessor<float, 2>();
  std::vector<int64_t> y = {0, 1, 2, 3, 4};
  uint64_t random = 1;
  for (int64_t t = 0; t < T; ++t) {
    std::vector<int64_t> x = {0, 1, 2, 3, 4}, product(n), inverse(n);
    for (int64_t i = n - 1; i > 0; --i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::swap(x[i], x[(random >> 33) % (i + 1)]);
    }
    for (int64_t i = 0; i < n; ++i) product[i] = y[x[i]], inverse[x[i]] = i;
    y = product;
    for (int64_t i = 0; i < n; ++i) at_want[t][i] = float(y[i] + 1);
    std::vector<bool> seen(n, false);
    for (int64_t c = 0, j = 0; c < n; ++c)
      for (int64_t b = inverse[c]; !seen[c] && b != c; b = inverse[b], ++j) {
        seen[b] = true;
        at_k[0][t][j][0][c] = float(std::sqrt(.5)), at_k[0][t][j][0][b] = -float(std::sqrt(.5));
        at_beta[0][t][j][0] = 2;
      }
  }
  // Queries cannot show the whole state at once, so read it as five heads, one per entry.
  const auto heads = [&](const Tensor& x) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[3] = n;
    return x.expand(sizes);
  };
  for (const int64_t K : {n, wide}) {
    const auto pad = [&](const Tensor& x, int64_t dim) {
      std::vector<int64_t> sizes = x.sizes().vec();
      sizes[dim] = K - n;
      return torch::cat({x, torch::zeros(sizes)}, dim);
    };
    const Tensor S = torch::arange(1, n + 1, torch::kFloat32).view({1, 1, n, 1});
    const auto out =
        ops::delta_product({.q = pad(torch::eye(n), 1).view({1, 1, n, K}).expand({1, T, n, K}),
                            .k = heads(pad(k, 4)),
                            .v = torch::zeros({1, T, N, n, 1}),
                            .beta = heads(beta),
                            .log_gate = {},
                            .state = pad(S, 2).expand({1, n, K, 1}),
                            .scale = 1.0,
                            .cu_seqlens = {}});
    EXPECT_TRUE(torch::equal(out.o.view({T, n}).round(), want)) << K;
  }
}

}  // namespace
}  // namespace lrnn
