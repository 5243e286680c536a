#include "experiments/through_steps.h"

#include <cmath>

#include "tests/experiments/small_run.h"

namespace lrnn::experiments {
namespace {

const std::vector<std::string> kKeepAll = {"train.keep=100", "train.checkpoint_every=4",
                                           "model.mixer.range=[-1,1]"};

TEST(ThroughSteps, LooksAtEveryCheckpoint) {
  TemporaryFolder at;
  train(small(kKeepAll), into(at / "run"));
  const auto all = through_steps(at / "run", {.words = 20, .lengths = {4, 9}});
  std::vector<int64_t> steps;
  for (const auto& look : all.looks) steps.push_back(look.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 12, 13}));
  const auto run = open(at / "run");
  EXPECT_LT(all.decisive, all.looks[0].heads.size());
  for (const auto& length : all.looks.back().lengths) {
    // As evaluation counts them.
    const auto e = training::evaluate(*run.model, *run.task,
                                      {.seed = uint64_t(run.config.seed),
                                       .samples = 20,
                                       .length = {length.length, length.length}});
    EXPECT_EQ(length.words, 20);
    EXPECT_EQ(length.wrong, 20 - e.sequences.right) << length.length;
    EXPECT_LE(length.weakest, length.margin);
    EXPECT_EQ(length.margin > 0, length.wrong * 2 <= 20);
  }
  for (const auto& head : all.looks.back().heads) {
    EXPECT_GT(head.kept, 0);
    EXPECT_LE(head.kept, 1 + 1e-6);
  }
}

// Every step reflects: with beta fixed at 2 nothing is lost, at 1 everything is.
TEST(ThroughSteps, ReflectionsKeepAndProjectionsForget) {
  for (const bool reflects : {true, false}) {
    auto keys = kKeepAll;
    keys.emplace_back("model.mixer.beta=false");
    if (!reflects) keys.emplace_back("model.mixer.range=[0,1]");
    const auto config = small(keys);
    const auto task = tasks::make(config.task);
    const auto model = build(config, *task);
    const auto look = look_at(*model, *task, 1, 8, {6});
    for (const auto& head : look.heads) {
      EXPECT_NEAR(head.kept, reflects ? 1 : 0, 0.01);
      EXPECT_EQ(std::isnan(head.alike), !reflects) << "no reflection, no keys of one";
      for (const auto& [token, z] : head.by_token)
        EXPECT_NEAR(z.real(), reflects ? -1 : 0, 0.01) << token;
    }
  }
}

TEST(ThroughSteps, NeedsMoreThanOneCheckpoint) {
  TemporaryFolder at;
  train(small({"train.keep=1", "train.checkpoint_every=0", "train.eval_every=0"}),
        into(at / "run"));
  EXPECT_HAS(error_of([&] { through_steps(at / "run", {}); }), "has 1 checkpoint");
}

}  // namespace
}  // namespace lrnn::experiments
