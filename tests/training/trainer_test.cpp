#include "training/trainer.h"

#include "tests/close.h"
#include "tests/training/small.h"

namespace lrnn::training {
namespace {

using torch::Tensor;

struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> weights;
};

Trained train(int64_t steps, const std::vector<std::string>& overrides) {
  Small small(overrides);
  Trainer trainer(*small.model, *small.task, small.config.train, 1);
  Trained out;
  for (int64_t s = 0; s < steps; ++s) out.losses.push_back(trainer.update(s, s).loss);
  for (const auto& p : small.model->parameters()) out.weights.push_back(p.detach().clone());
  return out;
}

TEST(Trainer, LossGoesDown) {
  const auto run = train(150, {"train.steps=150", "model.init.gain=1.0"});
  double first = 0, last = 0;
  for (size_t i = 0; i < 20; ++i) first += run.losses[i], last += run.losses[130 + i];
  EXPECT_LT(last, 0.9 * first);
}

TEST(Trainer, SameSeedSameBits) {
  const auto a = train(8, {}), b = train(8, {}), other = train(8, {"seed=2"});
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_NE(a.losses, other.losses);
  for (size_t i = 0; i < a.weights.size(); ++i)
    EXPECT_TRUE(torch::equal(a.weights[i], b.weights[i]));
}

// Parts of unequal size and with unequal numbers of targets weigh what they should.
TEST(Trainer, AccumulationIsTheWholeBatch) {
  const auto whole = train(3, {}), parts = train(3, {"train.accumulate=5"});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(whole.losses[i], parts.losses[i], 1e-5);
  for (size_t i = 0; i < whole.weights.size(); ++i)
    EXPECT_CLOSE_TO("weight", parts.weights[i], whole.weights[i], 1e-3);
}

TEST(Trainer, Bfloat16IsNearFloat32) {
  const auto want = train(5, {}), got = train(5, {"train.precision=bfloat16"});
  EXPECT_NE(got.losses, want.losses);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(got.losses[i], want.losses[i], 0.02);
}

TEST(Trainer, ClippingBoundsTheGradientThatIsApplied) {
  // AdamW forgets the scale of the gradient, but not changes of the scale between updates.
  const auto free = train(4, {}), clipped = train(4, {"train.clip=1e-3"});
  EXPECT_EQ(free.losses[0], clipped.losses[0]);
  EXPECT_FALSE(torch::equal(free.weights[0], clipped.weights[0]));
}

// Batch 2, and no other, holds a token whose embedding is not a number.
struct Poisoned : tasks::Task {
  int64_t vocabulary() const override { return 512; }
  double chance() const override { return 0; }
  tasks::Score score() const override { return tasks::Score::kAnswer; }
  tasks::Example sample(uint64_t, tasks::Split, uint64_t index, Range) const override {
    return {{index / 4 == 2 ? 511 : int64_t(index % 7), 5}, {-1, int64_t(index % 2)}, 2};
  }
  using tasks::Task::sample;
  std::string word(int64_t token) const override { return std::to_string(token); }
};

struct PoisonedRun {
  Poisoned task;
  Small small;
  model::ModelPtr model;
  TrainConfig config;
  explicit PoisonedRun(const char* nonfinite) : small({"model.layers=2"}) {
    model = experiments::build(small.config, task);
    torch::NoGradGuard no_gradients;
    model->named_parameters()["model.embeddings.weight"][511].fill_(std::nan(""));
    config = small.config.train;
    config.batch = 4;
    config.nonfinite = nonfinite;
  }
};

TEST(Trainer, SkipsABatchThatIsNotFinite) {
  PoisonedRun run("skip");
  Trainer trainer(*run.model, run.task, run.config, 1);
  for (int64_t i = 0; i < 5; ++i) {
    std::vector<Tensor> before;
    for (const auto& p : run.model->parameters()) before.push_back(p.detach().clone());
    const auto update = trainer.update(10 + i, i);
    EXPECT_EQ(update.skipped, i == 2) << i;
    size_t changed = 0;
    for (size_t j = 0; j < before.size(); ++j)
      changed += !before[j].equal(run.model->parameters()[j].detach());
    // The embedding with the NaN never equals itself.
    EXPECT_TRUE(i == 2 ? changed <= 1 : changed == before.size()) << changed;
  }
}

TEST(Trainer, StopsAndNamesStepAndTensor) {
  PoisonedRun run("stop");
  Trainer trainer(*run.model, run.task, run.config, 1);
  trainer.update(0, 0);
  try {
    trainer.update(17, 2);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "the loss is not finite at step 17: first in the weight model.embeddings.weight");
  }
}

TEST(Nonfinite, NamesTheFirstBlock) {
  Small small({"model.layers=3"});
  const auto split = tasks::Split::kTrain;
  const auto examples = draw(*small.task, 3, split, small.task->length(split), 0, 4);
  const auto batch = make_batch(examples.data(), 4, small.task->vocabulary());
  EXPECT_EQ(find_in_forward(*small.model, batch, "float32"), "the loss, from finite logits");
  torch::NoGradGuard no_gradients;
  // Finite weights, but their product is not.
  auto weights = small.model->named_parameters();
  for (const char* name : {"up", "gate", "down"})
    weights[std::string("model.layers.1.mlp.") + name + "_proj.weight"].fill_(1e30);
  EXPECT_EQ(find_in_forward(*small.model, batch, "float32"), "the output of model.layers.1");
}

TEST(Nonfinite, NamesTheGradientNearestToTheLoss) {
  Small small;
  for (auto& p : small.model->parameters()) p.mutable_grad() = torch::zeros_like(p);
  auto weights = small.model->named_parameters();
  weights["model.layers.0.attn.o_proj.weight"].mutable_grad()[0][0] = INFINITY;
  weights["model.embeddings.weight"].mutable_grad()[0][0] = NAN;
  EXPECT_EQ(find_in_gradients(*small.model), "model.layers.0.attn.o_proj.weight and 1 before it");
}

TEST(Trainer, RefusesATaskWithOtherWords) {
  Small small;
  const Poisoned task;
  EXPECT_THROW(Trainer(*small.model, task, small.config.train, 1), Error);
}

}  // namespace
}  // namespace lrnn::training
