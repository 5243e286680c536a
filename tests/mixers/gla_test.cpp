#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "mixers/mixer.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/mixers/key_error.h"

namespace lrnn::mixers {
namespace {

MixerPtr gla(int64_t width, const std::string& fields) {
  const auto mixer = make(width, Section::from_text("name: gla\n" + fields, "x.yaml"));
  mixer->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 1});
  return mixer;
}

// The layer written out with torch alone, one token at a time.
Tensor gla_by_hand(const Mixer& mixer, const Tensor& x, int64_t H, bool negative, double power) {
  const auto w = mixer.named_parameters();
  const auto heads = [&](const Tensor& y) { return y.unflatten(-1, {H, y.size(-1) / H}); };
  const auto through = [&](const char* name) { return x.matmul(w[name].t()); };
  const Tensor q = heads(through("q_proj.weight")), k = heads(through("k_proj.weight")),
               v = heads(through("v_proj.weight"));
  const Tensor low = through("gk_proj.0.weight").matmul(w["gk_proj.1.weight"].t());
  Tensor a = heads(torch::sigmoid(low + w["gk_proj.1.bias"])).pow(power);
  if (negative) a = 2 * a - 1;
  Tensor S = torch::zeros({x.size(0), H, k.size(3), v.size(3)}, x.options());
  std::vector<Tensor> o;
  for (int64_t t = 0; t < x.size(1); ++t) {
    S = a.select(1, t).unsqueeze(-1) * S +
        k.select(1, t).unsqueeze(-1) * v.select(1, t).unsqueeze(-2);
    o.push_back(q.select(1, t).unsqueeze(-2).matmul(S).squeeze(-2) / std::sqrt(double(k.size(3))));
  }
  const Tensor y = torch::stack(o, 1);
  const Tensor normed =
      y * torch::rsqrt(y.square().mean(-1, true) + 1e-6) * w["g_norm_swish_gate.weight"];
  return (normed.flatten(-2) * torch::silu(through("g_proj.weight")))
      .matmul(w["o_proj.weight"].t());
}

TEST(Gla, IsTheLayerOfThePaperInBothRanges) {
  for (const bool negative : {false, true}) {
    const auto mixer = gla(6, cat("heads: 2\nkey_dim: 3\nvalue_dim: 5\ngate_rank: 4\nrange: ",
                                  negative ? "[-1, 1]\ngate_normaliser: 1" : "[0, 1]"));
    mixer->to(torch::kFloat64);
    torch::manual_seed(2);
    const Tensor x = torch::randn({2, 9, 6}, torch::kFloat64);
    State state;
    std::map<std::string, Tensor> seen;
    Context context;
    context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
    const Tensor y = mixer->forward({x, {}}, state, context);
    EXPECT_CLOSE("y", y, gla_by_hand(*mixer, x, 2, negative, negative ? 1 : 1. / 16));
    EXPECT_GE(seen.at("gate").min().item<double>(), negative ? -1 : 0);
    EXPECT_EQ(seen.at("gate").min().item<double>() < 0, negative);
  }
}

TEST(Gla, NamesAndShapesAreFlas) {
  std::map<std::string, std::vector<int64_t>> got;
  const auto mixer = gla(128, "conv: 4");
  for (const auto& item : mixer->named_parameters()) got[item.key()] = item.value().sizes().vec();
  EXPECT_EQ(got, (std::map<std::string, std::vector<int64_t>>{{"q_proj.weight", {64, 128}},
                                                              {"k_proj.weight", {64, 128}},
                                                              {"v_proj.weight", {128, 128}},
                                                              {"gk_proj.0.weight", {16, 128}},
                                                              {"gk_proj.1.weight", {64, 16}},
                                                              {"gk_proj.1.bias", {64}},
                                                              {"q_conv1d.weight", {64, 1, 4}},
                                                              {"k_conv1d.weight", {64, 1, 4}},
                                                              {"v_conv1d.weight", {128, 1, 4}},
                                                              {"g_proj.weight", {128, 128}},
                                                              {"g_norm_swish_gate.weight", {32}},
                                                              {"o_proj.weight", {128, 128}}}));
  EXPECT_TRUE(gla(8, "output_gate: false")->named_parameters().contains("g_norm.weight"));
  EXPECT_TRUE(torch::equal(mixer->named_parameters()["gk_proj.1.bias"], torch::zeros(64)));
}

TEST(Gla, NamesTheKeyAndLineOfImpossibleValues) {
  const auto error = [](const std::string& fields) { return key_error("gla", fields); };
  EXPECT_EQ(error("heads: 0"), "x.yaml:2: heads must be at least 1, got 0");
  EXPECT_EQ(error("range: [-2, 1]"), "x.yaml:2: range must be [0, 1] or [-1, 1], got [-2, 1]");
  EXPECT_EQ(error("gate_normaliser: 0"), "x.yaml:2: gate_normaliser must be positive, got 0");
}

TEST(Gla, GatesDoNotFallBelowTheClamp) {
  const auto mixer = gla(6, "heads: 2\nclamp: -0.04");
  torch::manual_seed(3);
  State state;
  Context context;
  Tensor gate;
  context.observe = [&](const std::string& name, const Tensor& value) {
    if (name == "gate") gate = value;
  };
  mixer->forward({torch::randn({2, 9, 6}), {}}, state, context);
  EXPECT_NEAR(gate.min().item<double>(), std::exp(-0.04), 1e-6);
  EXPECT_GT(gate.max().item<double>(), std::exp(-0.04));
}

}  // namespace
}  // namespace lrnn::mixers
