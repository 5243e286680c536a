#include "mixers/mixer.h"
#include "mixers/ttt_jacobian.h"
#include "tests/close.h"
#include "tests/ops/ttt_cases.h"

// The layers around memories that are taught, Titans and TTT-Linear, written out with torch alone.
namespace lrnn::mixers {
namespace {

MixerPtr disturbed(const std::string& config) {
  const auto mixer = make(6, Section::from_text(config));
  mixer->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 1});
  mixer->to(torch::kFloat64);
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (auto& w : mixer->parameters()) w.add_(0.2 * torch::randn_like(w));
  return mixer;
}

Tensor run(const MixerPtr& mixer, const Tensor& x) {
  State state;
  return mixer->forward({x, {}}, state);
}

TEST(TitansLayer, IsItsFormulasInBothRanges) {
  for (const int largest : {1, 2}) {
    const auto mixer = disturbed(
        cat("{name: titans, heads: 2, key_dim: 3, value_dim: 4, conv: 0, output_gate: true, "
            "range: [0, ",
            largest, "]}"));
    const auto w = mixer->named_parameters();
    const Tensor x = torch::randn({1, 9, 6}, torch::kFloat64);
    const auto project = [&](const std::string& name) {
      return x.matmul(w[name + ".weight"].t())[0].unflatten(-1, {2, -1});  // [T,2,D]
    };
    const auto unit = [](const Tensor& y) { return y / (y.square().sum(-1, true) + 1e-6).sqrt(); };
    const Tensor q = unit(project("q_proj")), k = unit(project("k_proj")), v = project("v_proj");
    const Tensor gates =
        (x.matmul(w["gates_proj.weight"].t()) + w["gates_proj.bias"])[0].sigmoid();  // [T,6]
    std::vector<Tensor> rows;
    Tensor M = torch::zeros({2, 3, 4}, torch::kFloat64), S = M;
    for (int64_t t = 0; t < 9; ++t) {
      const auto gate = [&](int64_t which) {
        return gates[t].slice(0, 2 * which, 2 * which + 2).view({2, 1, 1});
      };
      const Tensor key = k[t].unsqueeze(-1);
      S = gate(1) * S - largest * gate(0) * key.matmul(key.mT().matmul(M) - v[t].unsqueeze(-2));
      M = (1 - gate(2)) * M + S;
      const Tensor o = q[t].unsqueeze(-2).matmul(M).squeeze(-2);
      const Tensor normed = o / (o.square().mean(-1, true) + 1e-6).sqrt() * w["o_norm.weight"];
      const Tensor out_gate = x[0][t].matmul(w["g_proj.weight"].t());
      rows.push_back((normed.flatten() * torch::silu(out_gate)).matmul(w["o_proj.weight"].t()));
    }
    EXPECT_CLOSE_TO("y", run(mixer, x)[0], torch::stack(rows), 1e-10);
  }
}

// W with gradients by torch, taken at the weights of the mini-batch's beginning.
TEST(TttLayer, IsItsFormulas) {
  const auto mixer =
      disturbed("{name: ttt, heads: 2, head_dim: 4, mini_batch: 3, step: 1.5, norm_eps: 1e-5}");
  const auto w = mixer->named_parameters();
  const Tensor x = torch::randn({1, 8, 6}, torch::kFloat64);
  const auto project = [&](const std::string& name) {
    return x.matmul(w[name + ".weight"].t())[0].unflatten(-1, {2, 4}).detach();
  };
  const Tensor q = project("q_proj"), k = project("k_proj"), v = project("v_proj");
  const Tensor eta =
      1.5 / 4 * (x.matmul(w["eta_proj.weight"].t()) + w["eta_proj.bias"])[0].sigmoid().detach();
  std::vector<Tensor> heads;
  for (int64_t h = 0; h < 2; ++h) {
    const auto f = [&](const Tensor& y, const Tensor& W, const Tensor& b) {
      return y + torch::layer_norm(y.matmul(W) + b, {4}, w["ttt_norm_weight"][h],
                                   w["ttt_norm_bias"][h], 1e-6);
    };
    Tensor W = w["W"][h].detach(), b = w["b"][h].detach(), W_first, b_first;
    std::vector<Tensor> o;
    for (int64_t t = 0; t < 8; ++t) {
      if (t % 3 == 0) W_first = W.clone().requires_grad_(), b_first = b.clone().requires_grad_();
      const Tensor loss = (f(k[t][h], W_first, b_first) - v[t][h]).square().sum() / 2;
      const auto grads = torch::autograd::grad({loss}, {W_first, b_first});
      W = W - eta[t][h] * grads[0], b = b - eta[t][h] * grads[1];
      o.push_back(f(q[t][h], W, b));
    }
    heads.push_back(torch::stack(o));
  }
  const Tensor y = torch::layer_norm(torch::cat(heads, -1), {8}, w["post_norm.weight"],
                                     w["post_norm.bias"], 1e-5);
  EXPECT_CLOSE_TO("y", run(mixer, x)[0], y.matmul(w["o_proj.weight"].t()), 1e-10);
}

// By differences of one step of a single token, of weights seen through its own key.
TEST(TttLayer, JacobianIsThatOfAStep) {
  recurrence::Tensors in =
      recurrence::ttt_problem({.B = 1, .T = 1, .H = 1, .D = 5, .mini_batch = 1});
  in["position"].zero_();
  const auto inputs = [](const recurrence::Tensors& x) {
    ops::Ttt of;
    of.mini_batch = 1;
    return ops::with(of, x);
  };
  const Tensor got = ttt_jacobian(inputs(in))[0][0][0];
  const Tensor k = in["k"].view({1, 5});
  const auto read = [&](const ops::TttResult& state) {
    return (k.matmul(state.W[0][0][0]) + state.b[0][0][0]).view(5);
  };
  Tensor want = torch::zeros({5, 5}, torch::kFloat64);
  for (int64_t i = 0; i < 5; ++i) {
    const auto moved = [&](double by) {
      recurrence::Tensors x = in;
      x["b"] = in["b"].clone(), x["b"].select(-1, i).add_(by * (1 / (k.square().sum() + 1)));
      x["W"] = in["W"].clone();
      x["W"].select(-1, i).add_(by * k.view(5) / (k.square().sum() + 1));
      return read(ops::ttt(inputs(x)));
    };
    want.select(1, i).copy_((moved(1e-5) - moved(-1e-5)) / 2e-5);
  }
  EXPECT_CLOSE_TO("jacobian", got, want, 1e-7);
}

}  // namespace
}  // namespace lrnn::mixers
