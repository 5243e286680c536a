#include "experiments/folder.h"
#include "experiments/metrics.h"
#include "tests/experiments/small_run.h"
#include "training/config.h"

// A run that goes on to another end than it was going to.
namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

TrainOptions longer(const std::string& out) {
  auto options = into(out, true);
  options.extend = true;
  return options;
}

std::vector<nlohmann::ordered_json> changes_in(const std::string& run) {
  std::vector<nlohmann::ordered_json> out;
  for (const auto& line : read_json_lines(run + "/metrics.jsonl"))
    if (line.at("kind") != "train" && line.at("kind") != "eval") out.push_back(line);
  return out;
}

nlohmann::json result_of(const std::string& run) {
  return nlohmann::json::parse(read_file(run + "/result.json"));
}

// Where the rate does not depend on the length, a run in two parts is a run in one: weights and
// moments both go on.
TEST(Extend, GoesOnWithWeightsAndMoments) {
  TemporaryFolder at;
  train(small({"train.schedule=constant"}), into(at / "whole"));
  train(small({"train.schedule=constant", "train.steps=7"}), into(at / "parts"));
  EXPECT_EQ(result_of(at / "parts").at("step"), 7);
  const auto result = train(small({"train.schedule=constant"}), longer(at / "parts"));
  EXPECT_EQ(result.step, 13);
  EXPECT_EQ(result.began, 7);
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(bytes_of(at / "parts").at(name), bytes_of(at / "whole").at(name)) << name;
  EXPECT_EQ(result_of(at / "parts").at("step"), 13);
  EXPECT_EQ(result_of(at / "parts").at("evaluation"), result_of(at / "whole").at("evaluation"));
  EXPECT_EQ(changes_in(at / "parts"),
            (std::vector<nlohmann::ordered_json>{nlohmann::ordered_json::parse(
                R"({"kind":"extended","step":7,"steps":{"from":7,"to":13}})")}));
}

TEST(Extend, KilledAnywhereAndResumedIsUndisturbed) {
  TemporaryFolder at;
  const auto first = small({"train.steps=7"}), second = small();
  train(first, into(at / "whole"));
  train(second, longer(at / "whole"));
  for (int64_t n : {1, 2, 3, 4, 5, 6}) {
    SCOPED_TRACE(n);
    const auto out = at / std::to_string(n);
    train(first, into(out));
    kill_after(n, second, longer(out));
    EXPECT_FALSE(fs::exists(out + "/result.json")) << "the run is not finished";
    if (n < 5) kill_after(1, second, into(out, true));
    train(read_config(out + "/config.yaml", {}), into(out, true));
    EXPECT_EQ(bytes_of(out), bytes_of(at / "whole"));
    EXPECT_EQ(changes_in(out).size(), 1u);
  }
}

// From the checkpoint on the rates are those of the new length, to the last bit.
TEST(Extend, AnUnfinishedRunGetsTheNewSchedule) {
  for (const int64_t steps : {8, 21}) {
    TemporaryFolder at;
    const auto out = at / "run";
    const auto before = small({"train.log_every=1"}),
               now = small({"train.log_every=1", cat("train.steps=", steps)});
    kill_after(7, before, into(out));  // the newest checkpoint is that of step 6
    EXPECT_EQ(train(now, longer(out)).step, steps);
    for (const auto& line : read_json_lines(out + "/metrics.jsonl"))
      if (line.at("kind") == "train") {
        const auto step = line.at("step").get<int64_t>();
        EXPECT_EQ(line.at("lr").get<double>(),
                  training::learning_rate(step <= 6 ? before.train : now.train, step - 1))
            << step;
      }
    ASSERT_EQ(changes_in(out).size(), 1u);
    EXPECT_EQ(changes_in(out)[0].at("kind"), steps > 13 ? "extended" : "shortened");
    EXPECT_EQ(changes_in(out)[0].at("step"), 6);
    EXPECT_EQ(result_of(out).at("step"), steps);
  }
}

TEST(Extend, MayEndWhereItIs) {
  TemporaryFolder at;
  const auto out = at / "run";
  kill_after(7, small(), into(out));
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(train(small({"train.steps=6"}), longer(out)).step, 6);
    EXPECT_EQ(result_of(out).at("step"), 6);
    EXPECT_EQ(changes_in(out).size(), 1u);
  }
}

TEST(Extend, CannotEndInThePast) {
  TemporaryFolder at;
  const auto out = at / "run";
  train(small(), into(out));
  const auto config = read_file(out + "/config.yaml"), metrics = read_file(out + "/metrics.jsonl");
  EXPECT_HAS(error_of([&] { train(small({"train.steps=12"}), longer(out)); }),
             "at step 13 already and cannot end at step 12");
  EXPECT_EQ(read_file(out + "/config.yaml"), config);
  EXPECT_EQ(read_file(out + "/metrics.jsonl"), metrics);
}

TEST(Extend, GoesOnAfterStopAt) {
  TemporaryFolder at;
  const auto out = at / "run";
  EXPECT_EQ(train(small({"train.stop_at=0.01"}), into(out)).step, 4);
  EXPECT_HAS(error_of([&] {
               train(small({"train.stop_at=0.01", "train.steps=20"}), longer(out));
             }),
             "ended at step 4");
  EXPECT_EQ(read_config(out + "/config.yaml", {}).train.steps, 13) << "nothing was changed";
  EXPECT_EQ(train(small({"train.stop_at=0"}), longer(out)).step, 13);
  ASSERT_EQ(changes_in(out).size(), 1u);
  EXPECT_EQ(changes_in(out)[0].dump(),
            R"({"kind":"extended","step":4,"stop_at":{"from":0.01,"to":0.0}})");
  // It never looked at stop_at before the end, so it is the run that had none.
  train(small(), into(at / "whole"));
  EXPECT_EQ(bytes_of(out).at("model.safetensors"), bytes_of(at / "whole").at("model.safetensors"));
}

TEST(Extend, OnlyWhenAskedFor) {
  TemporaryFolder at;
  const auto out = at / "run";
  train(small(), into(out));
  EXPECT_HAS(error_of([&] { train(small({"train.steps=20"}), into(out, true)); }),
             "is not the config given now: train.steps: 13 -> 20");
  EXPECT_HAS(error_of([&] {
               train(small({"train.steps=20", "train.lr=1"}), longer(out));
             }),
             "is not the config given now: train.lr: 0.01 -> 1");
  EXPECT_EQ(read_config(out + "/config.yaml", {}).train.steps, 13);
}

TEST(Extend, KnowsTheKeys) {
  EXPECT_TRUE(about_the_end("train.steps: 1 -> 2"));
  EXPECT_TRUE(about_the_end("train.stop_at=0"));
  EXPECT_FALSE(about_the_end("train.steps_per=1"));
  EXPECT_FALSE(about_the_end("train.lr=0"));
}

}  // namespace
}  // namespace lrnn::experiments
