#include "training/token_losses.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "ops/torch.h"
#include "training/batch.h"

namespace lrnn::training {
namespace {

model::Model& token_model() {
  static auto model = [] {
    auto section = Section::from_text(
        "{width: 16, layers: 2, mixer: {name: delta_product, heads: 2, key_dim: 8, householders: "
        "2},"
        " mlp: {hidden: 16}, init: {std: 0.5}}");
    return std::make_shared<model::Model>(load<model::ModelConfig>(section), 40, 5);
  }();
  return *model;
}

tasks::Example random_text(int64_t length, uint64_t seed) {
  tasks::Example e;
  Random random(seed, 1, 2);
  for (int64_t i = 0; i < length; ++i) e.input.push_back(random.between(0, 39));
  e.target.assign(e.input.begin() + 1, e.input.end());
  e.target.push_back(-1);
  return e;
}

// By the definition: log softmax of one forward.
std::vector<float> whole(const tasks::Example& e) {
  model::State state;
  const auto logits = token_model().forward(torch::tensor(e.input).unsqueeze(0), state)[0];
  const auto log_p = logits.log_softmax(-1);
  std::vector<float> out;
  for (size_t t = 0; t < e.input.size(); ++t)
    out.push_back(e.target[t] < 0 ? 0.f : -log_p[int64_t(t)][e.target[t]].item<float>());
  return out;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-4) << i;
}

TEST(TokenLosses, OfManyLengthsAreThoseOfEachAlone) {
  const torch::InferenceMode no_gradients;
  std::vector<tasks::Example> some;
  for (const int64_t length : {5, 1, 40, 40, 7})
    some.push_back(random_text(length, uint64_t(length)));
  some[3].target.assign(40, -1), some[3].target[20] = 7;
  const auto said = token_losses(token_model(), some.data(), 5);
  for (size_t i = 0; i < some.size(); ++i) expect_near(said[i].loss, whole(some[i]));
}

TEST(TokenLosses, PiecesWithACarriedStateAreTheWhole) {
  const torch::InferenceMode no_gradients;
  const std::vector<tasks::Example> two = {random_text(kTokensPerPiece + 300, 1),
                                           random_text(kTokensPerPiece + 300, 2)};
  const auto said = token_losses(token_model(), two.data(), 2);
  expect_near(said[0].loss, whole(two[0]));
  expect_near(said[1].loss, whole(two[1]));
}

// Where the state begins anew, every document is what it is by itself: in training's batches, and
// in windows of any length.
TEST(TokenLosses, DocumentsThatResetAreReadOneByOne) {
  const torch::InferenceMode no_gradients;
  for (const int64_t length : {60l, kTokensPerPiece + 50}) {
    auto e = random_text(length, 9);
    e.starts = {3, 4, length - 20};
    std::vector<float> expected;
    int64_t begin = 0;
    for (const int64_t end : {int64_t(3), int64_t(4), length - 20, length}) {
      tasks::Example one;
      one.input.assign(e.input.begin() + begin, e.input.begin() + end);
      one.target.assign(e.target.begin() + begin, e.target.begin() + end);
      const auto losses = whole(one);
      expected.insert(expected.end(), losses.begin(), losses.end());
      begin = end;
    }
    expect_near(token_losses(token_model(), &e, 1)[0].loss, expected);
    if (length > 60) continue;
    const auto batch = make_batch(&e, 1, 40);
    EXPECT_EQ(batch.context.cu_seqlens.numel(), 5);
    model::State state;
    const auto logits = token_model().forward(batch.input, state, batch.context);
    float sum = 0;
    for (const float x : expected) sum += x;
    EXPECT_NEAR(loss_sum(logits, batch).item<float>(), sum, 1e-2);
    EXPECT_THROW(make_batch(&e, 1, 40, 64), Error) << "a rectangle has no place for it";
  }
}

}  // namespace
}  // namespace lrnn::training
