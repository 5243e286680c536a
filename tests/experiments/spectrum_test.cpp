#include "experiments/spectrum.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/normalization.h>

#include <algorithm>
#include <set>

#include "experiments/transition.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/experiments/folder.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

// The same eigenvalues from the matrix itself, sorted so that two lists can be compared.
std::vector<std::complex<double>> sorted(const Tensor& values) {
  std::vector<std::complex<double>> out;
  const auto flat = values.to(torch::kComplexDouble).contiguous().view(-1);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const auto z = flat.const_data_ptr<c10::complex<double>>()[i];
    out.emplace_back(z.real(), z.imag());
  }
  std::sort(out.begin(), out.end(), [](auto a, auto b) {
    return std::abs(a.real() - b.real()) > 1e-7 ? a.real() < b.real() : a.imag() < b.imag();
  });
  return out;
}

TEST(Spectrum, EqualsThatOfTheWholeMatrix) {
  torch::manual_seed(3);
  const int64_t K = 7;
  for (const bool gated : {false, true})
    for (const int64_t N : {1, 2, 3, 4}) {
      const Tensor k =
          torch::nn::functional::normalize(torch::randn({1, 1, N, 1, K}, torch::kFloat64),
                                           torch::nn::functional::NormalizeFuncOptions().dim(-1));
      const Tensor beta = 2 * torch::rand({1, 1, N, 1}, torch::kFloat64);
      const Tensor log_gate = gated ? torch::full({1, 1, 1}, -0.3, torch::kFloat64) : Tensor();
      Tensor A = torch::eye(K, torch::kFloat64) * (gated ? std::exp(-0.3) : 1.0);
      for (int64_t j = 0; j < N; ++j) {
        const Tensor kj = k.select(2, j).view({K, 1});
        A = (torch::eye(K, torch::kFloat64) - beta.select(2, j).item() * kj.matmul(kj.t()))
                .matmul(A);
      }
      auto got = sorted(eigenvalues({beta, k, log_gate}));
      ASSERT_EQ(int64_t(got.size()), N);
      for (int64_t i = N; i < K; ++i) got.emplace_back(gated ? std::exp(-0.3) : 1.0, 0.0);
      const auto want = sorted(torch::linalg_eigvals(A));
      // Each expected value is found once; the order of close ones may differ.
      for (const auto z : want) {
        const auto at = std::min_element(got.begin(), got.end(), [&](auto a, auto b) {
          return std::abs(a - z) < std::abs(b - z);
        });
        ASSERT_NE(at, got.end());
        EXPECT_LT(std::abs(*at - z), 1e-6) << "N = " << N << ", gated " << gated;
        got.erase(at);
      }
    }
}

TEST(Spectrum, TwoReflectionsAreARotation) {
  // Mirrors 60 degrees apart turn by 120: the eigenvalues are the primitive third roots of 1.
  const double angle = std::acos(-1.0) / 3;
  const Tensor k = torch::tensor({1.0, 0.0, std::cos(angle), std::sin(angle)}, torch::kFloat64)
                       .view({1, 1, 2, 1, 2});
  const auto values = sorted(eigenvalues({torch::full({1, 1, 2, 1}, 2.0, torch::kFloat64), k, {}}));
  ASSERT_EQ(values.size(), 2u);
  for (const auto z : values) {
    EXPECT_NEAR(std::abs(z), 1, 1e-12);
    EXPECT_NEAR(z.real(), -0.5, 1e-12);
  }
}

TEST(Spectrum, WithGatesOfKeyChannelsIsThatOfTheWholeMatrix) {
  const int64_t K = 4, N = 2;
  torch::manual_seed(3);
  const Tensor k = torch::randn({1, 1, N, 1, K}, torch::kFloat64),
               beta = torch::rand({1, 1, N, 1}, torch::kFloat64),
               log_gate = -torch::rand({1, 1, 1, K}, torch::kFloat64);
  Tensor A = log_gate[0][0][0].exp().diag();  // the gate comes first
  for (int64_t j = 0; j < N; ++j) {
    const Tensor key = k[0][0][j][0];
    A = (torch::eye(K, torch::kFloat64) - beta[0][0][j][0] * torch::outer(key, key)).matmul(A);
  }
  const auto told = read_transition({{"k", k}, {"beta", beta}, {"log_gate", log_gate}});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Kind::kMatrix);
  ASSERT_EQ(told->values.sizes(), torch::IntArrayRef({1, 1, 1, K}));
  // Sums of powers tell the eigenvalues, whatever their order.
  for (int power = 1; power <= K; ++power) {
    const double want = torch::matrix_power(A, power).trace().item<double>();
    const auto sum = torch::pow(told->values, power).sum();
    EXPECT_NEAR(torch::real(sum).item<double>(), want, 1e-10 * (1 + std::abs(want))) << power;
  }
}

TEST(Spectrum, OfADecayAndARankOneStep) {
  // One decay for all keys: e^w everywhere but along kk, where it is e^w - a.
  const int64_t K = 5;
  const Tensor kk =
      torch::nn::functional::normalize(torch::randn({1, 1, 1, K}, torch::kFloat64),
                                       torch::nn::functional::NormalizeFuncOptions().dim(-1));
  const auto full = [&](double x) { return torch::full({1, 1, 1, K}, x, torch::kFloat64); };
  const auto values = sorted(eigenvalues(full(-0.25), full(1.5), kk));
  ASSERT_EQ(int64_t(values.size()), K);
  EXPECT_NEAR(values[0].real(), std::exp(-0.25) - 1.5, 1e-9);
  for (size_t i = 1; i < values.size(); ++i)
    EXPECT_NEAR(std::abs(values[i] - std::exp(-0.25)), 0, 1e-6);
}

TEST(Spectrum, OfAMemoryWithMomentumIsThatOfTheWholeMatrix) {
  torch::manual_seed(4);
  const int64_t K = 3;
  const auto rand = [](torch::IntArrayRef shape) { return torch::rand(shape, torch::kFloat64); };
  const Tensor theta = 2 * rand({1, 1, 40}), eta = rand({1, 1, 40}), alpha = rand({1, 1, 40}),
               key = rand({1, 1, 40, K});
  const Tensor pairs = eigenvalues(theta, eta, alpha, key);
  for (int64_t i = 0; i < 40; ++i) {
    const auto at = [&](const Tensor& x) { return x[0][0][i]; };
    const Tensor I = torch::eye(K, torch::kFloat64), step = at(theta) * at(key).outer(at(key));
    const Tensor A = torch::cat({torch::cat({(1 - at(alpha)) * I - step, at(eta) * I}, 1),
                                 torch::cat({-step, at(eta) * I}, 1)});
    const Tensor others = torch::stack({1 - at(alpha), at(eta)}).repeat({K - 1});
    const Tensor sum = (pairs[0][0][i].sum() + others.sum()).abs(),
                 product = (pairs[0][0][i].prod() * others.prod()).abs();
    EXPECT_CLOSE_TO("trace", sum, A.trace().abs(), 1e-9);
    EXPECT_CLOSE_TO("determinant", product, torch::linalg_det(A).abs(), 1e-9);
  }
}

std::string kind_of(const std::string& mixer) {
  if (mixer.starts_with("delta")) return "householders";
  if (mixer == "rwkv7") return "decay_and_step";
  if (mixer == "titans") return "momentum";
  if (mixer == "mlstm") return "forget_gate";
  if (mixer == "slstm" || mixer == "ttt") return "jacobian";
  return mixer.find("matrix") == std::string::npos ? "diagonal" : "matrix";
}

TEST(Told, IsReadByItsNameAndItsShape) {
  const auto zeros = [](torch::IntArrayRef shape) { return torch::zeros(shape); };
  EXPECT_FALSE(read_transition({}));
  EXPECT_FALSE(read_transition({{"h", zeros({1, 3, 4})}, {"v", zeros({1, 3, 2, 4})}}))
      << "names of the mixer's own";
  EXPECT_FALSE(read_transition({{"k", zeros({1, 3, 1, 2, 4})}})) << "half of what is needed";
  const auto gate = read_transition({{"forget_gate", zeros({1, 3, 2})}});
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate->values.sizes(), torch::IntArrayRef({1, 3, 2, 1}));
  EXPECT_EQ(error_of([&] {
              read_transition({{"matrix", zeros({1, 3, 4})}});
            }),
            "the mixer observes 'matrix' as [1, 3, 4], which is not [B,T,n,n] | "
            "src/mixers/mixer.h says what each name must be");
  for (const char* name : {"matrix", "jacobian", "gate", "forget_gate", "transition"})
    EXPECT_HAS(error_of([&] { read_transition({{name, zeros({1, 3})}}); }), name);
  EXPECT_HAS(error_of([&] { read_transition({{"matrix", zeros({1, 3, 4, 5})}}); }), "[B,T,n,n]");
}

TEST(Told, NothingIsSaidInAWayThatHelps) {
  const auto said = [](const Error& e) { return std::string(e.what()) + " | " + e.hint(); };
  EXPECT_HAS(said(nothing_told("leaky", false)),
             "the mixer leaky does not say what it applies to its state");
  EXPECT_HAS(said(nothing_told("leaky", false)), "context.observe");
  EXPECT_HAS(said(nothing_told("attention", true)), "attention multiplies no state");
}

TEST(Kinds, EachHasANameAndSaysWhatItIs) {
  std::set<std::string> names, sentences;
  for (const auto kind : {Kind::kHouseholders, Kind::kDecayAndStep, Kind::kDiagonal,
                          Kind::kMomentum, Kind::kForgetGate, Kind::kMatrix, Kind::kJacobian})
    names.insert(lrnn::experiments::name(kind)), sentences.insert(about(kind));
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(sentences.size(), 7u);
  EXPECT_HAS(std::string(about(Kind::kJacobian)), "not linear");
  EXPECT_HAS(std::string(about(Kind::kForgetGate)), "Forget gates");
}

// Outputs in two clouds, even and odd, in five dimensions.
TEST(BestMap, SeesAFlipThatSnapsIntoPlace) {
  torch::manual_seed(5);
  const int64_t n = 200, D = 5;
  const Tensor side = torch::randint(2, {n, 1}, torch::kFloat64) * 2 - 1;
  const Tensor axis = torch::tensor({0.6, -0.2, 0.1, 0.5, 0.3}, torch::kFloat64);
  const auto cloud = [&](const Tensor& where) {
    return where * axis + 0.02 * torch::randn({n, D}, torch::kFloat64) + 0.3;
  };
  const auto flips = best_map(cloud(side), cloud(-side)),
             keeps = best_map(cloud(side), cloud(side));
  ASSERT_TRUE(flips && keeps);
  EXPECT_NEAR(std::abs(*flips + 1.0), 0, 0.02) << *flips;
  EXPECT_NEAR(std::abs(*keeps - 1.0), 0, 0.02) << *keeps;
  EXPECT_FALSE(best_map(cloud(side), torch::randn({n, D}, torch::kFloat64))) << "no map fits";
  EXPECT_FALSE(best_map(cloud(side).slice(0, 0, 5), cloud(side).slice(0, 0, 5))) << "too few";
  EXPECT_FALSE(best_map(torch::ones({n, D}), torch::ones({n, D}))) << "nothing varies";
}

TEST(BestMap, SeesATurn) {
  torch::manual_seed(6);
  const double angle = 2 * std::acos(-1.0) / 3;
  const Tensor turn =
      torch::tensor({std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)},
                    torch::kFloat64)
          .view({2, 2});
  const Tensor before = torch::randn({100, 2}, torch::kFloat64);
  const auto z = best_map(before, before.matmul(turn.t()) + 4);
  ASSERT_TRUE(z);
  EXPECT_NEAR(std::abs(*z - std::polar(1.0, angle)), 0, 1e-6) << *z;
}

// Every mixer has one, but those that multiply no state.
class OfMixer : public testing::TestWithParam<std::string> {};

TEST_P(OfMixer, LiesWhereItsRangeIs) {
  const std::string name = GetParam().substr(0, GetParam().find(','));
  const auto config = read_config(
      std::string(LRNN_SOURCE_DIR) + "/configs/tiny.yaml",
      {"model.layers=2", "model.mixer={name: " + GetParam() + "}", "model.mlp={name: none}"});
  const auto task = tasks::make(config.task);
  const auto model = build(config, *task);
  if (name == "attention") {
    try {
      spectrum(*model, *task, 1, 2);
      FAIL() << "attention has no eigenvalues";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("attention multiplies no state"), std::string::npos)
          << e.what();
    }
    return;
  }
  const auto heads = spectrum(*model, *task, 1, 2);
  ASSERT_FALSE(heads.empty());
  EXPECT_EQ(lrnn::experiments::name(heads[0].kind), kind_of(name));
  EXPECT_EQ(heads.front().layer, 1);
  EXPECT_EQ(heads.back().layer, 2);
  const bool positive = GetParam().find("[0, 1]") != std::string::npos;
  const bool matrix =
      name == "full_matrix" || name == "matrix_product" || name == "slstm" || name == "ttt";
  for (const auto& head : heads) {
    EXPECT_EQ(head.tokens.size(), head.values.size());
    EXPECT_GT(int64_t(head.values.size()) + head.unit, 0);
    for (const auto z : head.values) {
      ASSERT_TRUE(std::isfinite(z.real()) && std::isfinite(z.imag()));
      EXPECT_TRUE(matrix || std::abs(z) <= 1 + 1e-6) << z;
      EXPECT_TRUE(!positive || z.real() >= -1e-6) << z;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixers, OfMixer,
                         testing::Values("delta_net", "delta_product, householders: 3",
                                         "mamba, range: [0, 1]", "mamba, range: [-1, 1]",
                                         "gla, range: [0, 1]", "gla, range: [-1, 1]", "rwkv7",
                                         "titans", "ttt, mini_batch: 2", "mlstm", "slstm",
                                         "diagonal, range: [0, 1]", "diagonal", "full_matrix",
                                         "matrix_product", "attention"));

}  // namespace
}  // namespace lrnn::experiments
