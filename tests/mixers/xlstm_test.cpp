#include <gtest/gtest.h>

#include <cmath>

#include "mixers/mixer.h"
#include "mixers/slstm_jacobian.h"
#include "ops/slstm/slstm.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/mixers/key_error.h"

// The layers as their papers write them, from their own weights and with none of our modules.
namespace lrnn::mixers {
namespace {

constexpr int64_t kInputs = 8, kTokens = 9;

struct Layer {
  MixerPtr mixer;
  std::map<std::string, Tensor> w;
  Tensor x = torch::randn({kTokens, kInputs}, torch::kFloat64);

  explicit Layer(const std::string& yaml) {
    torch::manual_seed(2);
    mixer = make(kInputs, Section::from_text(yaml));
    mixer->initialise({.seed = 4});
    mixer->to(torch::kFloat64);
    // Nothing stays at a special value.
    const torch::NoGradGuard no_grad;
    for (const auto& item : mixer->named_parameters()) {
      Tensor w_ = item.value();
      w_.add_(0.3 * torch::randn_like(w_));
      w[item.key()] = w_.detach();
    }
  }
  Tensor run() const {
    State state;
    return mixer->forward({x.unsqueeze(0), {}}, state).squeeze(0);
  }
};

Tensor layer_norm_of_heads(const Tensor& h, const Tensor& weight) {  // [T,H,D]
  const Tensor centred = h - h.mean(-1, true);
  const Tensor y = centred / (centred.square().mean(-1, true) + 1e-5).sqrt();
  return y.flatten(1) * (1 + weight);
}

Tensor convolution(const Tensor& x, const Tensor& weight, const Tensor& bias) {  // [T,C]
  Tensor y = bias.expand_as(x).clone();
  const int64_t W = weight.size(2);
  for (int64_t t = 0; t < x.size(0); ++t)
    for (int64_t j = 0; j < W; ++j)
      if (t - (W - 1) + j >= 0) y[t] += weight.select(2, j).squeeze(1) * x[t - (W - 1) + j];
  return torch::silu(y);
}

Tensor by_blocks(const Tensor& x, const Tensor& weight) {  // weight [blocks,out,in]
  return torch::einsum("tbi,boi->tbo",
                       {x.view({x.size(0), weight.size(0), weight.size(2)}), weight})
      .flatten(1);
}

TEST(MlstmLayer, IsThePublishedOne) {
  const Layer layer("name: mlstm\nheads: 2\nexpand: 2");
  const auto& w = layer.w;
  const Tensor inner = layer.x.matmul(w.at("x_proj.weight").t()),
               z = layer.x.matmul(w.at("z_proj.weight").t()),
               convolved = convolution(inner, w.at("conv1d.weight"), w.at("conv1d.bias"));
  const Tensor q = by_blocks(convolved, w.at("q_proj.weight")),
               k = by_blocks(convolved, w.at("k_proj.weight")),
               v = by_blocks(inner, w.at("v_proj.weight"));
  const Tensor all = torch::cat({q, k, v}, 1);
  const Tensor i = all.matmul(w.at("i_gate.weight").t()) + w.at("i_bias"),
               f = all.matmul(w.at("f_gate.weight").t()) + w.at("f_bias");
  std::vector<Tensor> heads;
  const int64_t D = inner.size(1) / 2;
  for (int64_t h = 0; h < 2; ++h) {
    const auto part = [&](const Tensor& x) { return x.slice(1, h * D, (h + 1) * D); };
    const Tensor F = torch::log_sigmoid(f.select(1, h)).cumsum(0);
    const Tensor logD =
        (F.unsqueeze(1) - F.unsqueeze(0) + i.select(1, h).unsqueeze(0))
            .masked_fill(torch::ones({kTokens, kTokens}, torch::kBool).triu(1), -INFINITY);
    const Tensor m = std::get<0>(logD.max(1, true));
    const Tensor weight = part(q).matmul(part(k).t()) / std::sqrt(double(D)) * (logD - m).exp();
    heads.push_back(weight.matmul(part(v)) /
                    (torch::maximum(weight.sum(1, true).abs(), (-m).exp()) + 1e-6));
  }
  const Tensor normed = layer_norm_of_heads(torch::stack(heads, 1), w.at("norm.weight"));
  const Tensor y = (normed + w.at("skip") * convolved) * torch::silu(z);
  EXPECT_CLOSE("y", layer.run(), y.matmul(w.at("o_proj.weight").t()));
}

TEST(SlstmLayer, IsThePublishedOne) {
  for (const int64_t conv : {0, 4}) {
    const Layer layer(cat("name: slstm\nheads: 2\nconv: ", conv));
    const auto& w = layer.w;
    const Tensor convolved =
        conv ? convolution(layer.x, w.at("conv1d.weight"), w.at("conv1d.bias")) : layer.x;
    const auto gates = [](const Tensor& y) {
      return y.view({1, kTokens, 2, 2, 4});
    };  // [.,T,H,2,D]
    const Tensor wx = torch::cat({gates(by_blocks(convolved, w.at("if_gates.weight"))),
                                  gates(by_blocks(layer.x, w.at("zo_gates.weight")))},
                                 3);
    const auto cell = ops::slstm_definition(
        {.wx = wx, .R = w.at("recurrent"), .bias = w.at("bias"), .state = {}, .cu_seqlens = {}});
    EXPECT_CLOSE("y", layer.run(), layer_norm_of_heads(cell.h.squeeze(0), w.at("norm.weight")));
  }
}

TEST(XlstmConfig, NamesTheKeyOfImpossibleValues) {
  EXPECT_EQ(key_error("slstm", "heads: 3"), "x.yaml:2: heads must divide the width 8, got 3");
  EXPECT_EQ(key_error("mlstm", "heads: 3"),
            "x.yaml:2: heads must divide the inner width 64, got 3");
  EXPECT_EQ(key_error("mlstm", "block: 5"),
            "x.yaml:2: block must divide the inner width 64, got 5");
  EXPECT_EQ(key_error("mlstm", "conv: 0"), "x.yaml:2: conv must be at least 1, got 0");
  EXPECT_EQ(key_error("slstm", "bias: zero"),
            "x.yaml:2: bias must be one of powerlaw, standard; got 'zero'");
}

// The state of the Jacobian (h, u, l) [H,3,D] as the cell's (h, c, n, m), and back. Any m will do.
Tensor cell_state(const Tensor& s, const Tensor& m) {
  const Tensor n = (s.select(1, 2) - m).exp();
  return torch::stack({s.select(1, 0), s.select(1, 1) * n, n, m}, 0).unsqueeze(0);  // [1,4,H,D]
}
Tensor plain_state(const Tensor& state) {
  const Tensor h = state[0][0], c = state[0][1], n = state[0][2], m = state[0][3];
  return torch::stack({h, c / n, n.log() + m}, 1);
}

TEST(SlstmJacobian, IsTheDerivativeOfTheCell) {
  torch::manual_seed(8);
  const auto f64 = torch::kFloat64;
  const int64_t H = 2, D = 3;
  const Tensor wx = torch::randn({1, 1, H, 4, D}, f64), R = torch::randn({H, D, 4, D}, f64),
               bias = torch::randn({H, 4, D}, f64), m = torch::randn({H, D}, f64),
               s = torch::randn({H, 3, D}, f64);
  const auto step = [&](const Tensor& from) {
    return plain_state(
        ops::slstm_definition(
            {.wx = wx, .R = R, .bias = bias, .state = cell_state(from, m), .cu_seqlens = {}})
            .state);
  };
  const Tensor gates =
      wx + bias + torch::einsum("hd,hdge->hge", {s.select(1, 0), R}).view({1, 1, H, 4, D});
  const Tensor J = slstm_jacobian(gates, R, cell_state(s, m).unsqueeze(1))[0][0];  // [H,3D,3D]
  const double eps = 1e-6;
  for (int64_t h = 0; h < H; ++h)
    for (int64_t j = 0; j < 3 * D; ++j) {
      Tensor up = s.clone(), down = s.clone();
      up[h].view({-1})[j] += eps, down[h].view({-1})[j] -= eps;
      const Tensor slope = (step(up) - step(down)) / (2 * eps);
      EXPECT_CLOSE_TO(cat("head ", h, ", column ", j), J[h].select(1, j), slope[h].reshape({-1}),
                      1e-7);
      EXPECT_EQ(slope[1 - h].abs().max().item<double>(), 0) << "heads do not meet";
    }
}

// At the beginning there is no memory: nothing of the old one is kept.
TEST(SlstmJacobian, IsFiniteAtTheBeginning) {
  const Layer layer("name: slstm\nheads: 2");
  std::map<std::string, Tensor> told;
  Context context;
  context.observe = [&](const std::string& name, const Tensor& value) { told[name] = value; };
  State state;
  const Tensor y = layer.mixer->forward({layer.x.unsqueeze(0), {}}, state, context);
  EXPECT_TRUE(told.at("jacobian").isfinite().all().item<bool>());
  const Tensor outputs = told.at("outputs");
  ASSERT_EQ(outputs.size(1), kTokens + 1);
  EXPECT_EQ(outputs.select(1, 0).abs().max().item<double>(), 0);
  EXPECT_CLOSE("outputs", layer_norm_of_heads(outputs[0].slice(0, 1), layer.w.at("norm.weight")),
               y[0]);
}

}  // namespace
}  // namespace lrnn::mixers
