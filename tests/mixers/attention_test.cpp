#include <gtest/gtest.h>

#include <cmath>

#include "mixers/mixer.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::mixers {
namespace {

MixerPtr attention(const std::string& more) {
  const auto mixer = make(8, Section::from_text("name: attention\nheads: 2\n" + more));
  mixer->initialise({.gain = 1, .std = 0.5, .seed = 4});
  mixer->to(torch::kFloat64);
  return mixer;
}

// One position after the other, one head after the other; `turn` as complex numbers.
Tensor by_hand(Mixer& mixer, Tensor x, const std::string& positions) {
  std::map<std::string, Tensor> w;
  for (const auto& item : mixer.named_parameters()) w[item.key()] = item.value().detach();
  const int64_t T = x.size(0), D = 4;
  if (positions == "learned") x = x + w["positions"].slice(0, 0, T);
  const Tensor q = x.matmul(w["q_proj.weight"].t()).view({T, 2, D}),
               k = x.matmul(w["k_proj.weight"].t()).view({T, 2, D}),
               v = x.matmul(w["v_proj.weight"].t()).view({T, 2, D});
  const auto turn = [&](const Tensor& row, int64_t t) {
    if (positions != "rotary") return row;
    const Tensor frequency = torch::tensor({1.0, 0.01}, torch::kFloat64) * double(t);
    const Tensor a = torch::complex(row.slice(0, 0, 2), row.slice(0, 2, 4)) *
                     torch::polar(torch::ones_like(frequency), frequency);
    return torch::cat({torch::real(a), torch::imag(a)});
  };
  std::vector<Tensor> out;
  for (int64_t t = 0; t < T; ++t) {
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < 2; ++h) {
      std::vector<Tensor> scores;
      for (int64_t s = 0; s <= t; ++s)
        scores.push_back(turn(q[t][h], t).dot(turn(k[s][h], s)) / std::sqrt(double(D)));
      const Tensor weight = torch::softmax(torch::stack(scores), 0);
      heads.push_back(weight.matmul(v.slice(0, 0, t + 1).select(1, h)));
    }
    out.push_back(torch::cat(heads).matmul(w["o_proj.weight"].t()));
  }
  return torch::stack(out);
}

TEST(Attention, IsSoftmaxOverThePast) {
  torch::manual_seed(1);
  for (const char* positions : {"rotary", "learned", "none"}) {
    const auto mixer = attention(cat("positions: ", positions));
    const Tensor x = torch::randn({7, 8}, torch::kFloat64);
    State state;
    const Tensor y = mixer->forward({x.unsqueeze(0), {}}, state).squeeze(0);
    EXPECT_CLOSE(positions, y, by_hand(*mixer, x, positions));
  }
}

TEST(Attention, LearnedPositionsEndSomewhere) {
  const auto mixer = attention("positions: learned\ncontext: 3");
  State state;
  mixer->forward({torch::randn({1, 3, 8}, torch::kFloat64), {}}, state);
  try {
    mixer->forward({torch::randn({1, 1, 8}, torch::kFloat64), {}}, state);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "attention: there are 3 learned positions, and a token has the number 4");
  }
}

// A tanh reaches -1 and so flips a sign at every 1; a sigmoid cannot.
TEST(Toys, ADiagonalWithNegativeEigenvaluesCountsModuloTwo) {
  const auto mixer = make(2, Section::from_text("name: diagonal\nrange: [-1, 1]"));
  mixer->to(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  auto parameters = mixer->named_parameters();
  for (const auto& item : parameters) item.value().zero_();
  // Channel 0 starts at 1 with the first token, which alone has x_1 = 1, and turns where x_0 = -1.
  parameters["A.weight"][0][0] = 10, parameters["A.bias"][0] = 0;
  parameters["B.weight"][0][1] = 1;
  const int64_t T = 200;
  Tensor x = torch::zeros({1, T, 2}, torch::kFloat64);
  const Tensor ones = torch::randint(2, {T}, torch::kInt64);
  x.select(2, 0).copy_(1 - 2 * ones.to(torch::kFloat64));
  x[0][0][0] = 1, x[0][0][1] = 1;
  State state;
  const Tensor y = mixer->forward({x, {}}, state).select(2, 0)[0];
  int64_t count = 0;
  for (int64_t t = 1; t < T; ++t) {
    count += ones[t].item<int64_t>();
    EXPECT_NEAR(y[t].item<double>(), count % 2 ? -1 : 1, 1e-9) << t;
  }
}

TEST(Toys, MatrixProductIsTheProductInTheUnitBall) {
  torch::manual_seed(3);
  const auto mixer = make(4, Section::from_text("name: matrix_product\nsize: 2"));
  mixer->initialise({.seed = 1});
  mixer->to(torch::kFloat64);
  auto w = mixer->named_parameters();
  const Tensor x = torch::randn({1, 6, 4}, torch::kFloat64);
  Tensor H = torch::eye(2, torch::kFloat64);
  for (int64_t t = 0; t < 6; ++t)
    H = (w["A.weight"].matmul(x[0][t]) + w["A.bias"]).view({2, 2}).matmul(H);
  State state;
  const Tensor y = mixer->forward({x, {}}, state)[0][5];
  EXPECT_CLOSE("H", state[0][0], H);
  const Tensor h = H.flatten() / H.norm().clamp_min(1);
  EXPECT_CLOSE("y", y, w["o_proj.weight"].matmul(h));
}

TEST(Toys, FullMatrixIsItsRecurrence) {
  torch::manual_seed(3);
  const auto mixer = make(3, Section::from_text("name: full_matrix"));
  mixer->initialise({.seed = 1});
  mixer->to(torch::kFloat64);
  auto w = mixer->named_parameters();
  const Tensor x = torch::randn({1, 5, 3}, torch::kFloat64);
  Tensor h = torch::zeros({3}, torch::kFloat64);
  const auto matrix = [&](const std::string& name, const Tensor& u) {
    return (w[name + ".weight"].matmul(u) + w[name + ".bias"]).view({3, 3}) / std::sqrt(3.0);
  };
  for (int64_t t = 0; t < 5; ++t)
    h = matrix("A", x[0][t]).matmul(h) + matrix("B", x[0][t]).matmul(x[0][t]);
  State state;
  const Tensor y = mixer->forward({x, {}}, state)[0][4];
  EXPECT_CLOSE("h", y, h);
}

// A head of keys and values that two queries read is two equal ones.
TEST(Attention, SharedKeysAreRepeatedOnes) {
  torch::manual_seed(5);
  const auto few = attention("kv_heads: 1"), many = attention("");
  const torch::NoGradGuard no_grad;
  for (const auto& item : few->named_parameters()) {
    const bool shared = item.key().starts_with("k_proj") || item.key().starts_with("v_proj");
    const Tensor w = item.value();
    many->named_parameters()[item.key()].copy_(shared ? torch::cat({w, w}) : w);
  }
  const Tensor x = torch::randn({2, 6, 8}, torch::kFloat64);
  State a, b;
  const Tensor y = few->forward({x, {}}, a), want = many->forward({x, {}}, b);
  EXPECT_CLOSE("y", y, want);
  EXPECT_EQ(a[0].size(2), 2 * 4 + 1);
}

TEST(Attention, KvHeadsDivideTheHeads) {
  try {
    make(8, Section::from_text("name: attention\nheads: 4\nkv_heads: 3", "x.yaml"));
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "x.yaml:3: kv_heads must divide the 4 heads, got 3");
  }
}

}  // namespace
}  // namespace lrnn::mixers
