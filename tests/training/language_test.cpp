#include <cmath>

#include "tests/close.h"
#include "tests/training/random_text.h"
#include "training/estimate.h"
#include "training/evaluate.h"
#include "training/head_loss.h"
#include "training/trainer.h"

// Training at a language model's vocabulary: the loss without all logits, parts of a batch, and
// blocks that are run again.
namespace lrnn::training {
namespace {

using torch::Tensor;

constexpr int64_t kTokens = 2048, kLength = 128;  // 64 sequences: 2^24 logits

model::ModelPtr small_model(const std::string& more = "", int64_t vocabulary = kTokens) {
  const auto config = load<model::ModelConfig>(
      Section::from_text("width: 16\nlayers: 2\nmlp: {hidden: 32}\n"
                         "mixer: {name: delta_net, heads: 2, key_dim: 8}\n" +
                         more));
  return std::make_shared<model::Model>(config, vocabulary, 5);
}

TrainConfig training_of(int64_t batch, int64_t parts, const std::string& precision = "float32",
                        const std::string& recompute = "none") {
  TrainConfig out;
  out.batch = batch, out.accumulate = parts, out.warmup = 0, out.lr = 1e-3;
  out.precision = precision, out.recompute = recompute;
  return out;
}

struct Trained {
  std::vector<Update> updates;
  std::vector<Tensor> weights;
};
Trained train(const model::ModelPtr& model, const TrainConfig& config, int64_t updates = 3,
              int64_t length = kLength) {
  const RandomText task(model->vocabulary(), length);
  Trainer trainer(*model, task, config, 1);
  Trained out;
  for (int64_t i = 0; i < updates; ++i) out.updates.push_back(trainer.update(i, i));
  for (const auto& p : model->parameters()) out.weights.push_back(p.detach().clone());
  return out;
}

void expect_same_bits(const Trained& a, const Trained& b, const std::string& what) {
  for (size_t i = 0; i < a.updates.size(); ++i) {
    EXPECT_EQ(a.updates[i].loss, b.updates[i].loss) << what << ", update " << i;
    EXPECT_EQ(a.updates[i].grad_norm, b.updates[i].grad_norm) << what << ", update " << i;
  }
  for (size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_TRUE(torch::equal(a.weights[i], b.weights[i])) << what << ", weight " << i;
}

Batch batch_of(const tasks::Task& task, int64_t count) {
  const auto examples =
      draw(task, 1, tasks::Split::kTrain, task.length(tasks::Split::kTrain), 0, count);
  return make_batch(examples.data(), count, task.vocabulary());
}

// What is decided by sizes must not catch small models: their bits are published.
TEST(Language, ManyLogitsAreThoseOfALanguage) {
  EXPECT_TRUE(has_many_logits(32000, 32768));
  EXPECT_TRUE(has_many_logits(1024, 1 << 14));
  EXPECT_FALSE(has_many_logits(1024, 1 << 13));
  EXPECT_FALSE(has_many_logits(200, 1 << 24));
}

TEST(Language, LossInChunksIsTheLossOfAllLogits) {
  for (const char* tied : {"tied: false", "tied: true"}) {
    const auto model = small_model(tied);
    const RandomText task(kTokens, kLength);
    const Batch batch = batch_of(task, 64);
    ASSERT_TRUE(has_many_logits(*model, batch));
    const auto gradients = [&] {
      std::vector<Tensor> out;
      for (const auto& p : model->parameters()) out.push_back(p.grad().clone());
      model->zero_grad();
      return out;
    };
    model::State state;
    const Tensor logits = model->forward(batch.input, state, batch.context),
                 want = loss_sum(logits, batch);
    want.backward();
    const auto d_want = gradients();
    const auto got = head_loss(*model, batch, 1);
    got.loss.backward();
    const auto d_got = gradients();
    EXPECT_CLOSE_TO("loss", got.loss, want, 1e-6);
    EXPECT_EQ(got.right.item<double>(), right(logits, batch).sum().item<double>());
    for (size_t i = 0; i < d_want.size(); ++i)
      EXPECT_CLOSE_TO(std::string("gradient, ") + tied, d_got[i], d_want[i], 1e-4);
    const auto rows = head_scores(*model, batch);
    EXPECT_CLOSE_TO("rows", rows.loss.sum(), want, 1e-6);
    EXPECT_EQ(rows.right.sum().item<double>(), got.right.item<double>());
  }
}

// A batch of 64 at once, with its logits in chunks, and in 8 parts of 8.
TEST(Language, PartsAreTheWholeBatch) {
  for (const char* precision : {"float32", "bfloat16"}) {
    const bool wide = precision[0] == 'f';
    const auto whole = train(small_model("tied: true"), training_of(64, 1, precision)),
               parts = train(small_model("tied: true"), training_of(64, 8, precision)),
               again = train(small_model("tied: true"), training_of(64, 8, precision));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(parts.updates[i].loss / whole.updates[i].loss, 1, wide ? 1e-6 : 1e-3);
      EXPECT_EQ(parts.updates[i].targets, 64 * (kLength - 1));
    }
    for (size_t i = 0; i < whole.weights.size(); ++i)
      EXPECT_CLOSE_TO("weight", parts.weights[i], whole.weights[i], wide ? 1e-3 : 2e-2);
    expect_same_bits(parts, again, precision);
  }
}

// The gradients of 32 parts are added up in float32, whatever the precision of the products: their
// sum is that of the parts' own gradients, whose shares differ by a power of two.
TEST(Language, SumsOfManyPartsAreFloat32) {
  for (const char* precision : {"float32", "bfloat16"}) {
    constexpr int64_t kParts = 32, kShort = 17;
    const RandomText task(kTokens, kShort);
    auto config = training_of(kParts, 1, precision);
    config.batch = 1, config.lr = 1e-30;  // the weights stay where they are
    std::vector<Tensor> sums;
    {
      const auto model = small_model();
      Trainer trainer(*model, task, config, 1);
      for (int64_t i = 0; i < kParts; ++i) {
        trainer.update(i, i);
        size_t at = 0;
        for (const auto& p : model->parameters()) {
          if (i == 0) sums.push_back(torch::zeros_like(p, torch::kFloat64));
          sums[at++] += p.grad().to(torch::kFloat64) / double(kParts);
        }
      }
    }
    const auto model = small_model();
    config.batch = config.accumulate = kParts;
    Trainer trainer(*model, task, config, 1);
    trainer.update(0, 0);
    size_t at = 0;
    for (const auto& item : model->named_parameters())
      EXPECT_CLOSE_TO(item.key() + " in " + precision, item.value().grad(), sums[at++], 2e-6);
  }
}

// What is made again in backward is what it was: nothing is different but the memory.
TEST(Language, WhatIsMadeAgainIsTheSame) {
  for (const char* name : {"delta_net", "delta_product", "mamba", "gla", "rwkv7", "slstm", "mlstm",
                           "attention", "diagonal", "full_matrix", "matrix_product"})
    for (const char* precision : {"float32", "bfloat16"}) {
      const auto make = [&](int64_t vocabulary) {
        const auto config = load<model::ModelConfig>(Section::from_text(
            cat("width: 12\nlayers: 2\ntied: true\nmlp: {hidden: 16}\nmixer: {name: ", name, "}")));
        return std::make_shared<model::Model>(config, vocabulary, 5);
      };
      // With few tokens the first block reads a table.
      for (const int64_t vocabulary : {int64_t(7), int64_t(1500)}) {
        const auto kept = train(make(vocabulary), training_of(4, 2, precision), 2, 12);
        for (const char* what : {"cheap", "block"})
          for (const int64_t blocks : {0, 1}) {
            auto again = training_of(4, 2, precision, what);
            again.recompute_blocks = blocks;
            expect_same_bits(kept, train(make(vocabulary), again, 2, 12),
                             cat(name, " ", precision, " ", vocabulary, " ", what, " ", blocks));
          }
      }
    }
}

TEST(Language, OnAGpuLanguageModelsKeepLess) {
  using Recompute = model::Model::Recompute;
  const auto what = [](const TrainConfig& config, int64_t vocabulary, bool gpu) {
    const auto of = load<model::ModelConfig>(
        Section::from_text("width: 12\nlayers: 5\nmixer: {name: delta_net}"));
    const auto out = recompute_of(config, *model::Model::shapes(of, vocabulary), gpu);
    return std::pair(out.what, out.blocks);
  };
  const std::pair nothing(Recompute::kNothing, int64_t(0));
  TrainConfig config;
  EXPECT_EQ(what(config, 32000, true), std::pair(Recompute::kCheap, int64_t(3)));
  EXPECT_EQ(what(config, 32000, false), nothing);
  EXPECT_EQ(what(config, 7, true), nothing);
  config.recompute_blocks = 4;
  EXPECT_EQ(what(config, 32000, true), std::pair(Recompute::kCheap, int64_t(4)));
  config.recompute = "cheap", config.recompute_blocks = 0;
  EXPECT_EQ(what(config, 7, false), std::pair(Recompute::kCheap, int64_t(5)));
  config.recompute = "block", config.recompute_blocks = 9;
  EXPECT_EQ(what(config, 7, false), std::pair(Recompute::kBlocks, int64_t(5)));
  config.recompute = "none";
  EXPECT_EQ(what(config, 32000, true), nothing);
}

// An evaluation does without all logits as well.
TEST(Language, EvaluationInChunksIsTheEvaluationOfAllLogits) {
  const auto model = small_model();
  const RandomText task(kTokens, kLength);
  const auto many = evaluate(*model, task, {.samples = 64, .batch = 64}),
             few = evaluate(*model, task, {.samples = 64, .batch = 4});
  EXPECT_NEAR(many.loss / few.loss, 1, 1e-6);
  EXPECT_EQ(many.tokens.right, few.tokens.right);
  EXPECT_EQ(many.tokens.count, 64 * (kLength - 1));
}

TEST(Language, EstimatesKnowWhatIsMadeAgain) {
  const RandomText task(kTokens, kLength);
  const auto model = small_model();
  const auto none = estimate_memory(*model, task, training_of(64, 1)),
             cheap = estimate_memory(*model, task, training_of(64, 1, "float32", "cheap")),
             block = estimate_memory(*model, task, training_of(64, 1, "float32", "block"));
  EXPECT_LT(cheap.batch, none.batch);
  EXPECT_LT(block.batch, cheap.batch);
}

// Logits with the weights of the start are nearly independent and normal with variance std^2 D,
// for the head reads rows of RMS 1: E log sum exp - E x = ln V + std^2 D / 2.
TEST(Language, LossAtTheStart) {
  for (const double std : {0.006, 0.1}) {
    const auto model =
        small_model(cat("tied: true\ninit: {scheme: deltaproduct, std: ", std, "}"), 4096);
    const RandomText task(4096, kLength);
    const Batch batch = batch_of(task, 64);
    const torch::NoGradGuard no_grad;
    const double loss = head_loss(*model, batch, 1 / double(batch.targets)).loss.item<double>();
    EXPECT_NEAR(loss, std::log(4096.0) + std * std * 16 / 2, 0.02) << std;
  }
}

}  // namespace
}  // namespace lrnn::training
