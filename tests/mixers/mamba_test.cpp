#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "mixers/mixer.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/mixers/key_error.h"

namespace lrnn::mixers {
namespace {

MixerPtr mamba(int64_t width, const std::string& fields) {
  return make(width, Section::from_text("name: mamba\n" + fields, "x.yaml"));
}

// The layer written out with torch alone, from the equations of the paper.
Tensor mamba_by_hand(const Mixer& mixer, const Tensor& x, bool negative) {
  const auto w = mixer.named_parameters();
  const Tensor in = x.matmul(w["in_proj.weight"].t());
  const int64_t E = in.size(2) / 2, R = w["dt_proj.weight"].size(1), N = w["A_log"].size(1),
                W = w["conv1d.weight"].size(2), T = x.size(1);
  const Tensor xi = in.narrow(2, 0, E), z = in.narrow(2, E, E);
  const Tensor past = torch::cat({torch::zeros({x.size(0), W - 1, E}, x.options()), xi}, 1);
  Tensor u = w["conv1d.bias"] + torch::zeros_like(xi);
  for (int64_t j = 0; j < W; ++j)
    u = u + past.narrow(1, j, T) * w["conv1d.weight"].select(2, j).squeeze(1);
  u = torch::silu(u);
  const auto parts = u.matmul(w["x_proj.weight"].t()).split_with_sizes({R, N, N}, 2);
  const Tensor dt =
      torch::softplus(parts[0].matmul(w["dt_proj.weight"].t()) + w["dt_proj.bias"]).unsqueeze(-1);
  Tensor a = (dt * -w["A_log"].exp()).exp();
  if (negative) a = 2 * a - 1;
  Tensor h = torch::zeros({x.size(0), E, N}, x.options());
  std::vector<Tensor> y;
  for (int64_t t = 0; t < T; ++t) {
    h = a.select(1, t) * h +
        dt.select(1, t) * parts[1].select(1, t).unsqueeze(1) * u.select(1, t).unsqueeze(-1);
    y.push_back((h * parts[2].select(1, t).unsqueeze(1)).sum(-1) + w["D"] * u.select(1, t));
  }
  return (torch::stack(y, 1) * torch::silu(z)).matmul(w["out_proj.weight"].t());
}

TEST(Mamba, IsTheLayerOfThePaperInBothRanges) {
  for (const bool negative : {false, true})
    for (const char* more : {"conv: 1", "conv: 4\nexpand: 3\nstate_dim: 5\ndt_rank: 2"}) {
      const auto mixer = mamba(6, cat("range: ", negative ? "[-1, 1]" : "[0, 1]", "\n", more));
      mixer->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 1});
      mixer->to(torch::kFloat64);
      torch::manual_seed(2);
      const Tensor x = torch::randn({2, 9, 6}, torch::kFloat64);
      State state;
      std::map<std::string, Tensor> seen;
      Context context;
      context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
      const Tensor y = mixer->forward({x, {}}, state, context);
      EXPECT_CLOSE("y", y, mamba_by_hand(*mixer, x, negative));
      EXPECT_GE(seen.at("transition").min().item<double>(), negative ? -1 : 0);
      EXPECT_LE(seen.at("transition").max().item<double>(), 1);
    }
}

TEST(Mamba, NamesShapesAndInitialWeights) {
  const auto mixer = mamba(128, "conv: 1");
  mixer->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 1});
  std::map<std::string, Tensor> w;
  std::map<std::string, std::vector<int64_t>> got;
  for (const auto& item : mixer->named_parameters()) {
    w[item.key()] = item.value().detach();
    got[item.key()] = item.value().sizes().vec();
  }
  EXPECT_EQ(got, (std::map<std::string, std::vector<int64_t>>{{"in_proj.weight", {512, 128}},
                                                              {"conv1d.weight", {256, 1, 1}},
                                                              {"conv1d.bias", {256}},
                                                              {"x_proj.weight", {40, 256}},
                                                              {"dt_proj.weight", {256, 8}},
                                                              {"dt_proj.bias", {256}},
                                                              {"A_log", {256, 16}},
                                                              {"D", {256}},
                                                              {"out_proj.weight", {128, 256}}}));
  const std::map<std::string, double> bounds = {
      {"in_proj.weight", 0.0883883}, {"x_proj.weight", 0.0625}, {"out_proj.weight", 0.0625},
      {"dt_proj.weight", 0.353553},  {"conv1d.weight", 1},      {"conv1d.bias", 1}};
  for (const auto& [name, bound] : bounds) {
    const double largest = w[name].abs().max().item<double>();
    EXPECT_LE(largest, bound * 1.00001) << name;
    EXPECT_GT(largest, bound * 0.96) << name;
    EXPECT_NEAR(w[name].std().item<double>(), bound / std::sqrt(3.0), 0.1 * bound) << name;
  }
  EXPECT_TRUE(torch::equal(w["D"], torch::ones(256)));
  EXPECT_CLOSE("A", w["A_log"].exp(), torch::arange(1, 17).expand({256, 16}).to(torch::kFloat32));
  EXPECT_GE(w["dt_proj.bias"].min().item<double>(), -6.9078);
  EXPECT_LE(w["dt_proj.bias"].max().item<double>(), -2.2521);
  EXPECT_EQ(mixer->undecayed(), (std::vector<std::string>{"A_log", "D"}));
  EXPECT_EQ(mixer->state_size(), 256 * 17);

  mixer->initialise({.scheme = "fla", .gain = 1, .std = 0.02, .seed = 1});
  EXPECT_NEAR(mixer->named_parameters()["in_proj.weight"].std().item<double>(), 0.02, 1e-3);
}

TEST(Mamba, NamesTheKeyAndLineOfImpossibleValues) {
  const auto error = [](const std::string& fields) { return key_error("mamba", fields); };
  EXPECT_EQ(error("expand: 0"), "x.yaml:2: expand must be at least 1, got 0");
  EXPECT_EQ(error("state_dim: 0"), "x.yaml:2: state_dim must be at least 1, got 0");
  EXPECT_EQ(error("dt_rank: -1"),
            "x.yaml:2: dt_rank must be at least 1, or 0 for width / 16; got -1");
  EXPECT_EQ(error("conv: 0"), "x.yaml:2: conv must be at least 1, got 0");
  EXPECT_EQ(error("range: [0, 2]"), "x.yaml:2: range must be [0, 1] or [-1, 1], got [0, 2]");
}

}  // namespace
}  // namespace lrnn::mixers
