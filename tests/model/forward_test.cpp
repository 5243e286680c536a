#include <gtest/gtest.h>

#include <set>

#include "tests/close.h"
#include "tests/model/configs.h"

// What a model computes, whatever it is made of.
namespace lrnn::model {
namespace {

// On top of kSmall, but for the last.
const char* kWithAttention = "hybrid: {every: 2, mixer: {name: attention, heads: 2}}";
const char* kXlstm = R"(
norm: layer
decay: matrices
hybrid: {every: 2, mixer: {name: slstm, heads: 2}, mlp: {name: geglu, hidden: 4}}
)";
const char* kPlain = R"(width: 4
norm: none
block: plain
init: {std: 0.5}
mlp: {name: none}
mixer: {name: diagonal}
hybrid: {every: 2, mixer: {name: matrix_product, size: 2}}
)";

const char* kListed = "hybrid: {layers: [0], mixer: {name: attention, heads: 2, kv_heads: 1}}";
const char* kRwkv = R"(width: 6
layers: 3
norm: affine
input_norm: true
init: {gain: 1, std: 0.5}
mlp: {name: channel_mix, hidden: 5}
mixer: {name: rwkv7, heads: 2, head_dim: 3, value_rank: 2}
)";

class Forward : public testing::TestWithParam<const char*> {
 protected:
  static std::string config() {
    const bool own = GetParam() == kPlain || GetParam() == kRwkv;
    return own ? GetParam() : cat(kSmall, GetParam());
  }
  Forward() : model_(config_of(config()), 5, 2) {
    torch::manual_seed(4);
    model_.to(torch::kFloat64);
  }
  Tensor run(const Tensor& tokens) {
    State state;
    return model_.forward(tokens, state);
  }
  Model model_;
};

// 24 tokens of a vocabulary of 5 go through the table, 1 to 4 of them do not.
TEST_P(Forward, StepByStepIsTheWhole) {
  const Tensor tokens = torch::randint(5, {3, 8}, torch::kInt64), want = run(tokens);
  ASSERT_EQ(want.sizes(), torch::IntArrayRef({3, 8, 5}));
  State state;
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < 8; ++t) steps.push_back(model_.forward(tokens.slice(1, t, t + 1), state));
  EXPECT_CLOSE("logits", torch::cat(steps, 1), want);
  int64_t size = 0;
  for (const auto& block : state)
    for (const auto& part : block) size += part.numel();
  EXPECT_EQ(size, 3 * model_.state_size(8));
}

TEST_P(Forward, TheEndsAreTheLastOfEach) {
  const std::vector<int64_t> bounds = {0, 3, 4, 10, 12};
  const Tensor tokens = torch::randint(5, {1, 12}, torch::kInt64);
  const Context context{.cu_seqlens = torch::tensor(bounds),
                        .read_at = torch::tensor({2, 3, 9, 11})};
  State state;
  const Tensor got = model_.forward(tokens, state, context);
  ASSERT_EQ(got.sizes(), torch::IntArrayRef({1, 4, 5}));
  std::vector<Tensor> want;
  for (size_t s = 0; s < 4; ++s)
    want.push_back(run(tokens.slice(1, bounds[s], bounds[s + 1])).slice(1, -1));
  EXPECT_CLOSE("logits", got, torch::cat(want, 1));

  State dense;
  const Tensor batch = tokens.view({3, 4});
  const Tensor last = model_.forward(batch, dense, {.read_at = torch::tensor({3, 7, 11})});
  ASSERT_EQ(last.sizes(), torch::IntArrayRef({1, 3, 5}));
  EXPECT_CLOSE("dense", last[0], run(batch).select(1, -1));
}

TEST_P(Forward, SomeRowsAreThoseOfTheWhole) {
  const Tensor tokens = torch::randint(5, {3, 4}, torch::kInt64);
  Context context;
  context.read_at = torch::tensor({1, 2, 7, 11});
  State state;
  const Tensor got = model_.forward(tokens, state, context);
  ASSERT_EQ(got.sizes(), torch::IntArrayRef({1, 4, 5}));
  EXPECT_CLOSE("logits", got[0], run(tokens).view({12, 5}).index_select(0, context.read_at));
  const auto gradients = [&](const Tensor& logits) {
    model_.zero_grad();
    logits.square().sum().backward();
    std::vector<Tensor> out;
    for (const auto& p : model_.parameters()) out.push_back(p.grad().clone());
    return out;
  };
  const auto some = gradients(got),
             all = gradients(run(tokens).view({12, 5}).index_select(0, context.read_at));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_CLOSE(cat("gradient ", i), some[i], all[i]);
  context.read_at = torch::arange(12);  // which are all
  State fresh;
  const Tensor every = model_.forward(tokens, fresh, context)[0];
  EXPECT_CLOSE("all", every, run(tokens).view({12, 5}));
}

// One number through everything, against finite differences of every parameter.
TEST_P(Forward, GradientsAreThoseOfFiniteDifferences) {
  const Tensor tokens = torch::randint(5, {2, 4}, torch::kInt64);
  const Tensor target = torch::randint(5, {8}, torch::kInt64);
  const auto loss = [&] { return torch::cross_entropy_loss(run(tokens).view({8, 5}), target); };
  loss().backward();
  const torch::NoGradGuard no_grad;
  const auto loss_at = [&](Tensor w, const Tensor& value) {
    w.copy_(value);
    return loss().item<double>();
  };
  for (const auto& item : model_.named_parameters()) {
    const Tensor direction = torch::randn_like(item.value());
    Tensor w = item.value();
    const Tensor at = w.clone();
    const double h = 1e-5;
    const auto slope = [&](double step) {
      const double above = loss_at(w, at + step * direction),
                   below = loss_at(w, at - step * direction);
      return (above - below) / (2 * step);
    };
    // Two step sizes cancel the error of third order.
    const double want = (4 * slope(h) - slope(2 * h)) / 3;
    w.copy_(at);
    const double got = (w.grad() * direction).sum().item<double>();
    EXPECT_NEAR(got, want, 1e-7 * (1 + std::abs(want))) << item.key();
    EXPECT_NE(got, 0) << item.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Forward,
                         testing::Values("", "tied: true", "layers: 1", kWithAttention, kXlstm,
                                         kListed, kRwkv, kPlain),
                         [](const auto& info) { return cat("config", info.index); });

TEST(Model, ObserversSeeEveryLayer) {
  Model model(config_of(kSmall), 5, 2);
  std::set<std::string> seen;
  Context context;
  context.observe = [&](const std::string& name, const Tensor&) { seen.insert(name); };
  State state;
  model.forward(torch::zeros({1, 9}, torch::kInt64), state, context);
  EXPECT_EQ(seen, (std::set<std::string>{"layers.0.k", "layers.0.v", "layers.0.beta",
                                         "layers.0.log_gate", "layers.1.k", "layers.1.v",
                                         "layers.1.beta", "layers.1.log_gate", "stream"}));
}

}  // namespace
}  // namespace lrnn::model
