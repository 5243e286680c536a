#include "cli/judge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "experiments/run.h"
#include "ops/torch.h"

namespace lrnn::cli {
namespace {

using torch::Tensor;

constexpr int64_t kWords = 12;

// A bigram model as weights: the stream is one-hot, the layer adds nothing to it, and the head
// holds the logarithms of the probabilities. So every log-likelihood is known.
struct Bigram {
  Tensor log_p;  // [before, next]
  model::ModelPtr model;

  Bigram() {
    log_p = torch::log_softmax(3 * torch::randn({kWords, kWords}, torch::kFloat64), 1);
    const auto config = experiments::read_config(
        LRNN_SOURCE_DIR "/configs/tiny.yaml",
        {"model.mixer={name: delta_product, heads: 2}", cat("model.width=", kWords),
         "model.layers=1", "model.final_norm=false", "model.mlp={name: none}"});
    model = std::make_shared<model::Model>(config.model, kWords, 3);
    const torch::NoGradGuard no_gradients;
    for (auto& item : model->named_parameters()) {
      if (item.key() == "model.embeddings.weight") item.value().copy_(torch::eye(kWords));
      if (item.key().ends_with("o_proj.weight")) item.value().zero_();
      if (item.key() == "lm_head.weight") item.value().copy_(log_p.t());
    }
  }
  double of(int32_t before, int32_t next) const { return log_p[before][next].item<double>(); }
};

text::Ids some_ids(int64_t count) {
  text::Ids out;
  for (int64_t i = 0; i < count; ++i) out.push_back(int32_t((i * i + 3 * i + 5) % kWords));
  return out;
}

TEST(Judge, KnowsTheLikelihoodsOfABigramModel) {
  const torch::InferenceMode no_gradients;
  const Bigram bigram;
  const Judge judge(*bigram.model, "float32", false);
  // Of several lengths in one forward: what stands beside a request changes nothing.
  std::vector<text::Request> requests;
  for (const int64_t size : {2, 9, 5, 40}) requests.push_back({some_ids(size), size_t(size / 2)});
  const auto said = judge.of(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& ids = requests[i].ids;
    double sum = 0;
    bool greedy = true;
    for (size_t t = ids.size() - requests[i].scored; t < ids.size(); ++t) {
      sum += bigram.of(ids[t - 1], ids[t]);
      greedy = greedy && bigram.log_p[ids[t - 1]].argmax().item<int64_t>() == ids[t];
    }
    EXPECT_NEAR(said[i].sum, sum, 1e-4) << i;
    EXPECT_EQ(said[i].greedy, greedy) << i;
  }
}

// Whatever the windows are, a text is as likely as its pairs: nothing is lost or counted twice.
TEST(Judge, RollsOverATextOfAnyLength) {
  const torch::InferenceMode no_gradients;
  const Bigram bigram;
  const Judge judge(*bigram.model, "float32", false);
  constexpr int64_t kMost = 16;
  for (const int64_t size : {int64_t{1}, kMost, kMost + 1, 3 * kMost + 7}) {
    const auto ids = some_ids(size);
    double want = bigram.of(0, ids[0]), got = 0;
    for (size_t t = 1; t < ids.size(); ++t) want += bigram.of(ids[t - 1], ids[t]);
    for (const auto& one : judge.of(text::rolling_requests(ids, {.prefix = 0, .longest = kMost})))
      got += one.sum;
    EXPECT_NEAR(got, want, 1e-4) << size;
  }
}

}  // namespace
}  // namespace lrnn::cli
