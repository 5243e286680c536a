#include <barrier>
#include <thread>

#include "model/decoder.h"
#include "tests/close.h"
#include "tests/cuda/device.h"
#include "tests/cuda/same_updates.h"
#include "tests/training/small.h"
#include "training/evaluate.h"
#include "training/trainer.h"

namespace lrnn::training {
namespace {

using torch::Tensor;

struct GpuTraining : OnGpu {};

// One model of each kind, small; every one trains in the recorded way or the test says which fails.
const std::vector<std::vector<std::string>> kModels = {
    {"model.mixer={name: delta_product, heads: 2, key_dim: 8, range: [-1, 1], conv: 4}"},
    {"model.mixer={name: delta_product, heads: 2, key_dim: 16, householders: 2, range: [-1, 1], "
     "conv: 0, forget_gate: true}"},
    {"model.mixer={name: mamba, state_dim: 8}"},
    {"model.mixer={name: gla, heads: 2}"},
    {"model.mixer={name: rwkv7, heads: 2, head_dim: 8}"},
    {"model.mixer={name: mlstm, heads: 2}"},
    {"model.mixer={name: slstm, heads: 2}"},
    {"model.mixer={name: attention, heads: 2}"},
    {"model.mixer={name: diagonal}"},
};

struct Trained {
  std::vector<Update> updates;
  std::vector<Tensor> weights;
  Evaluation evaluation;
  int64_t recordings = 0;
};

Trained train(
    int64_t steps, const std::vector<std::string>& overrides, bool record, int64_t stop_at = -1,
    const std::function<void()>& before_the_end = [] {}) {
  Small small(overrides);
  // First the stream: memory of another one would be lent again while this one still reads from it.
  const auto stream = ops::gpu()->own_stream();
  small.model->to(torch::kCUDA);
  Trained out;
  auto trainer =
      std::make_unique<Trainer>(*small.model, *small.task, small.config.train, 1, record);
  for (int64_t s = 0; s < steps; ++s) {
    if (s == stop_at) {  // as a new process would, from the saved moments
      const auto saved = trainer->optimizer().state();
      const auto growth = trainer->growth();
      trainer = std::make_unique<Trainer>(*small.model, *small.task, small.config.train, 1, record);
      trainer->optimizer().load(saved, "test");
      trainer->go_on(growth);
    }
    out.updates.push_back(trainer->update(s, s));
  }
  out.recordings = trainer->recordings();
  for (const auto& p : small.model->parameters()) out.weights.push_back(p.detach().cpu());
  out.evaluation = evaluate(*small.model, *small.task, {.seed = 3, .samples = 64});
  before_the_end();
  return out;
}

void expect_same(const Trained& a, const Trained& b) {
  expect_same_updates(a, b);
  EXPECT_EQ(a.evaluation.loss, b.evaluation.loss);
}

TEST_F(GpuTraining, ARecordingGivesTheBitsOfItsKernelsOneByOne) {
  for (auto overrides : kModels) {
    SCOPED_TRACE(overrides[0]);
    overrides.push_back("train.clip=1.0");
    expect_same(train(6, overrides, true), train(6, overrides, false));
  }
}

TEST_F(GpuTraining, TheSameBitsTwiceAndAfterGoingOn) {
  for (const auto& overrides : kModels) {
    SCOPED_TRACE(overrides[0]);
    const auto whole = train(6, overrides, true);
    expect_same(whole, train(6, overrides, true));
    expect_same(whole, train(6, overrides, true, 3));
  }
}

// The next batch is made while the GPU works on this one: it must have the length that it has on a
// CPU and after going on.
TEST_F(GpuTraining, WordsThatGrow) {
  auto overrides = kModels[1];
  for (const char* more :
       {"task={name: group, group: S3, train: {length: 4}, eval: {length: 8, samples: 2}}",
        "train.batch=2", "train.grow_at=0.001"})
    overrides.push_back(more);
  const auto whole = train(60, overrides, true);
  expect_same(whole, train(60, overrides, false));
  for (const int64_t stop_at : {49, 50, 51})
    expect_same(whole, train(60, overrides, true, stop_at));
  for (size_t s = 0; s < whole.updates.size(); ++s)
    EXPECT_EQ(whole.updates[s].targets, 2 * (s < 51 ? 3 : 4)) << s;
  EXPECT_EQ(whole.recordings, 1) << "that of the shorter words is kept";
}

// More than LibTorch has streams to hand out, all recording at once and all ending at once.
TEST_F(GpuTraining, ManyRunsAtOnceHaveTheBitsOfOneAlone) {
  constexpr size_t kRuns = 40;
  std::vector<Trained> alone;
  for (const auto& overrides : kModels) alone.push_back(train(6, overrides, true));
  for (int round = 0; round < 3; ++round) {
    std::vector<Trained> got(kRuns);
    std::vector<std::string> errors(kRuns);
    std::barrier<> together(kRuns);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kRuns; ++i)
      threads.emplace_back([&, i] {
        bool arrived = false;
        try {
          together.arrive_and_wait();
          got[i] = train(6, kModels[i % kModels.size()], true, -1,
                         [&] { arrived = true, together.arrive_and_wait(); });
        } catch (const std::exception& e) {
          errors[i] = e.what();
          if (!arrived) together.arrive_and_drop();
        }
      });
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < kRuns; ++i) {
      SCOPED_TRACE(cat("round ", round, ", run ", i));
      EXPECT_EQ(errors[i], "");
      expect_same(alone[i % kModels.size()], got[i]);
    }
  }
}

TEST_F(GpuTraining, ARecordingThatFailsLeavesTheStreamAndTheMemoryUsable) {
  const auto stream = ops::gpu()->own_stream();
  const Tensor x = torch::ones({1000}, torch::kCUDA);
  for (const bool wait : {false, true}) {  // which no recording may do
    int calls = 0;
    Tensor y;
    const auto fails = [&] {
      y = x * 2;
      if (++calls < 3) return;
      if (!wait) throw Error("at the recording");
      ops::gpu()->wait();
    };
    EXPECT_ANY_THROW(ops::gpu()->record(fails));
    EXPECT_EQ(calls, 3);
    EXPECT_EQ((x * 3).sum().item<double>(), 3000);
    Tensor z;
    const auto recording = ops::gpu()->record([&] { z = x * 5; });
    recording->replay();
    EXPECT_EQ(z.sum().item<double>(), 5000);
  }
}

TEST_F(GpuTraining, IsNearTheCpu) {
  for (auto overrides : kModels) {
    SCOPED_TRACE(overrides[0]);
    overrides.push_back("train.weight_decay=0.1");
    overrides.push_back("train.clip=0.5");
    const auto got = train(4, overrides, true);
    Small small(overrides);
    Trainer trainer(*small.model, *small.task, small.config.train, 1);
    for (int64_t s = 0; s < 4; ++s) {
      const auto want = trainer.update(s, s);
      EXPECT_NEAR(got.updates[size_t(s)].loss, want.loss, 1e-4 * want.loss);
      EXPECT_NEAR(got.updates[size_t(s)].grad_norm, want.grad_norm, 2e-3 * want.grad_norm);
      EXPECT_EQ(got.updates[size_t(s)].targets, want.targets);
    }
    const auto weights = small.model->parameters();
    for (size_t i = 0; i < weights.size(); ++i)
      EXPECT_CLOSE_TO("weight", got.weights[i], weights[i].detach(), 2e-3);
    const auto want = evaluate(*small.model, *small.task, {.seed = 3, .samples = 64});
    EXPECT_NEAR(got.evaluation.loss, want.loss, 1e-3 * want.loss);
    EXPECT_EQ(got.evaluation.sequences.count, want.sequences.count);
  }
}

// Shapes that come back are recorded, so there have to be some: 40 batches of few lengths, twice.
TEST_F(GpuTraining, ARecordedEvaluationIsTheOneKernelByKernel) {
  for (const auto& overrides : kModels)
    for (const char* precision : {"float32", "bfloat16"}) {
      if (std::string(precision) == "bfloat16" && overrides == kModels.back()) continue;
      SCOPED_TRACE(cat(overrides[0], " ", precision));
      Small small(overrides);
      const auto stream = ops::gpu()->own_stream();
      small.model->to(torch::kCUDA);
      Evaluator recorded(*small.model, *small.task), plain(*small.model, *small.task, false);
      const EvaluateOptions how{.seed = 5, .samples = 160, .batch = 4, .precision = precision};
      for (int round = 0; round < 2; ++round) {
        const auto got = recorded.evaluate(how), want = plain.evaluate(how);
        EXPECT_EQ(got.loss, want.loss);
        EXPECT_EQ(got.sequences.right, want.sequences.right);
        EXPECT_EQ(got.sequences.count, want.sequences.count);
        EXPECT_EQ(got.tokens.right, want.tokens.right);
        EXPECT_EQ(got.prefix, want.prefix);
        // A recording must see that weights change.
        torch::NoGradGuard no_grad;
        for (auto& p : small.model->parameters()) p.mul_(1.5);
      }
    }
}

TEST_F(GpuTraining, DecodingIsAForwardOfOneTokenAtATime) {
  for (const auto& overrides : kModels) {
    SCOPED_TRACE(overrides[0]);
    Small small(overrides);
    const auto stream = ops::gpu()->own_stream();
    small.model->to(torch::kCUDA);
    model::Decoder recorded(*small.model, 3), plain(*small.model, 3, false);
    torch::manual_seed(1);
    const Tensor words = torch::randint(small.task->vocabulary(), {3, 20}, torch::kInt64);
    const torch::InferenceMode no_gradients;
    for (int round = 0; round < 2; ++round) {
      model::State state;
      const Tensor whole = small.model->forward(words.cuda(), state);
      recorded.restart(), plain.restart();
      for (int64_t t = 0; t < 20; ++t) {
        const Tensor got = recorded.step(words.select(1, t)), want = plain.step(words.select(1, t));
        EXPECT_TRUE(torch::equal(got, want)) << "token " << t;
        EXPECT_CLOSE_TO(cat("token ", t), got, whole.select(1, t), 1e-4);
      }
      const auto& a = recorded.state();
      const auto& b = plain.state();
      for (size_t i = 0; i < b.size(); ++i)
        for (size_t j = 0; j < b[i].size(); ++j)
          EXPECT_TRUE(!b[i][j].defined() || torch::equal(a[i][j], b[i][j])) << i << " " << j;
    }
    const bool grows = small.model->state_size(1) != small.model->state_size(2);
    EXPECT_EQ(recorded.kernels() == 0, grows);
  }
}

TEST_F(GpuTraining, PartsAddUpToTheBatch) {
  const auto whole = train(3, kModels[0], true);
  auto overrides = kModels[0];
  overrides.push_back("train.accumulate=3");
  const auto parts = train(3, overrides, true);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(whole.updates[i].loss, parts.updates[i].loss, 1e-4 * whole.updates[i].loss);
}

TEST_F(GpuTraining, Bfloat16IsNearFloat32) {
  for (size_t i = 0; i + 1 < kModels.size(); ++i) {
    SCOPED_TRACE(kModels[i][0]);
    auto overrides = kModels[i];
    overrides.push_back("train.precision=bfloat16");
    const auto want = train(4, kModels[i], true), got = train(4, overrides, true);
    for (size_t s = 0; s < 4; ++s)
      EXPECT_NEAR(got.updates[s].loss, want.updates[s].loss, 0.05 * want.updates[s].loss);
  }
}

TEST_F(GpuTraining, WhatIsNotFiniteChangesNothingAndIsNamed) {
  for (const char* how : {"stop", "skip"}) {
    Small small({cat("train.nonfinite=", how)});
    const auto stream = ops::gpu()->own_stream();
    small.model->to(torch::kCUDA);
    Trainer trainer(*small.model, *small.task, small.config.train, 1);
    trainer.update(0, 0);
    torch::NoGradGuard no_grad;
    small.model->named_parameters()["model.layers.0.mlp.up_proj.weight"].fill_(INFINITY);
    const auto head = small.model->named_parameters()["lm_head.weight"].clone();
    if (std::string(how) == "skip") {
      torch::AutoGradMode with_grad(true);
      EXPECT_TRUE(trainer.update(1, 1).skipped);
    } else {
      torch::AutoGradMode with_grad(true);
      try {
        trainer.update(1, 1);
        ADD_FAILURE() << "no error";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("up_proj"), std::string::npos) << e.what();
      }
    }
    EXPECT_TRUE(torch::equal(head, small.model->named_parameters()["lm_head.weight"]));
    EXPECT_EQ(trainer.optimizer().steps(), 1);
  }
}

}  // namespace
}  // namespace lrnn::training
