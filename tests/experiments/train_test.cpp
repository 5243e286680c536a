#include <sys/file.h>
#include <sys/resource.h>

#include <csignal>

#include "experiments/checkpoints.h"
#include "experiments/metrics.h"
#include "tests/experiments/small_run.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSteps = 13;

class Train : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    reference_ = new TemporaryFolder;
    train(small(), into(*reference_ / "run"));
  }
  static void TearDownTestSuite() { delete reference_; }
  static std::string reference() { return *reference_ / "run"; }

  static void killed_after(int64_t n, const std::string& out) {
    kill_after(n, small(), into(out, true));
  }

  TemporaryFolder folder_;

 private:
  static TemporaryFolder* reference_;
};
TemporaryFolder* Train::reference_ = nullptr;

TEST_F(Train, LeavesWhatItShould) {
  for (const char* name :
       {"config.yaml", "info.json", "metrics.jsonl", "timing.jsonl", "result.json"})
    EXPECT_TRUE(fs::exists(reference() + "/" + name)) << name;
  std::vector<std::string> lines;
  std::ifstream in(reference() + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    lines.push_back(json["kind"].get<std::string>() + std::to_string(json["step"].get<int>()));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"eval4", "train5", "eval8", "train10", "eval12",
                                             "train13", "eval13"}));
  // Its own config starts the same run.
  train(read_config(reference() + "/config.yaml", {}), into(folder_ / "again"));
  EXPECT_EQ(bytes_of(folder_ / "again"), bytes_of(reference()));
}

TEST_F(Train, KilledAnywhereAndResumedIsUndisturbed) {
  for (int64_t first : {1, 2, 3, 4, 5, 7, 9, 12, 13}) {
    SCOPED_TRACE(first);
    const auto out = folder_ / std::to_string(first);
    killed_after(first, out);
    if (first < 12) killed_after(2, out);
    const auto result = train(small(), into(out, true));
    EXPECT_EQ(result.step, kSteps);
    EXPECT_FALSE(result.interrupted);
    EXPECT_EQ(bytes_of(out), bytes_of(reference()));
  }
}

TEST_F(Train, InterruptedSavesAndGoesOn) {
  const auto out = folder_ / "run";
  auto options = into(out, true);
  options.interrupted = [] { return true; };
  for (int64_t step = 1; step < kSteps; ++step) {
    const auto result = train(small(), options);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.step, step);
    EXPECT_EQ(open(out).step, step);
    EXPECT_FALSE(fs::exists(out + "/result.json"));
  }
  EXPECT_FALSE(train(small(), options).interrupted);
  EXPECT_EQ(bytes_of(out), bytes_of(reference()));
}

TEST_F(Train, ADamagedCheckpointFallsBackToThePreviousOne) {
  for (const char* name :
       {"model.safetensors", "optimizer.safetensors", "state.json", "config.yaml", "manifest.json"})
    for (const auto harm : {flip_a_bit, cut_in_half}) {
      SCOPED_TRACE(name);
      TemporaryFolder folder;
      const auto out = folder / "run";
      killed_after(7, out);  // checkpoints of steps 3 (or 4, the best so far) and 6
      EXPECT_TRUE(open(out).damaged.empty());
      harm(out + "/checkpoints/step-00000006/" + name);
      const auto opened = open(out);
      EXPECT_LT(opened.step, 6);
      ASSERT_EQ(opened.damaged.size(), 1u);
      EXPECT_HAS(opened.damaged[0], "step-00000006/" + std::string(name));
      testing::internal::CaptureStderr();
      EXPECT_EQ(train(small(), into(out, true)).damaged, opened.damaged);
      EXPECT_HAS(testing::internal::GetCapturedStderr(), "step-00000006/" + std::string(name));
      EXPECT_EQ(bytes_of(out), bytes_of(reference()));
    }
}

TEST_F(Train, AllDamagedIsAnErrorThatNamesTheFile) {
  const auto out = folder_ / "run";
  killed_after(7, out);
  for (const auto& entry : fs::directory_iterator(out + "/checkpoints"))
    if (!entry.is_symlink()) flip_a_bit(entry.path().string() + "/model.safetensors");
  EXPECT_HAS(error_of([&] { train(small(), into(out, true)); }), "model.safetensors is damaged");
  EXPECT_HAS(error_of([&] { open(out); }), "model.safetensors is damaged");
}

TEST_F(Train, LostMetricsAreAnError) {
  const auto out = folder_ / "run";
  killed_after(7, out);
  cut_in_half(out + "/metrics.jsonl");
  EXPECT_HAS(error_of([&] { train(small(), into(out, true)); }), "metrics.jsonl has");
}

TEST_F(Train, AFinishedRunIsLeftAlone) {
  const auto out = folder_ / "run";
  const auto first = train(small(), into(out));
  const auto time = fs::last_write_time(out + "/metrics.jsonl");
  const auto result = read_file(out + "/result.json");
  const auto again = train(small(), into(out, true));
  EXPECT_EQ(to_json(again.evaluation), to_json(first.evaluation));
  EXPECT_EQ(again.step, kSteps);
  EXPECT_EQ(again.seconds, first.seconds);
  EXPECT_EQ(read_file(out + "/result.json"), result);
  EXPECT_EQ(fs::last_write_time(out + "/metrics.jsonl"), time);
  EXPECT_EQ(bytes_of(out), bytes_of(reference()));

  fs::remove(out + "/result.json");  // killed just before it was written
  EXPECT_EQ(to_json(train(small(), into(out, true)).evaluation), to_json(first.evaluation));
}

TEST_F(Train, EndsWithTheAccuracyAskedFor) {
  const auto out = folder_ / "run";
  const auto config = small({"train.stop_at=0.01"});
  EXPECT_EQ(train(config, into(out)).step, 4) << "the first evaluation";
  EXPECT_EQ(open(out).step, 4);
  EXPECT_EQ(train(config, into(out, true)).step, 4) << "and stays there";
  EXPECT_EQ(train(small({"train.stop_at=1"}), into(folder_ / "never")).step, kSteps);
}

// Runs of an earlier version, whose config has no such key.
TEST_F(Train, AKeyThatIsMissingHasItsDefault) {
  const auto out = folder_ / "run";
  killed_after(4, out);
  std::string config = read_file(out + "/config.yaml");
  const auto at = config.find("  stop_at: 0.0\n");
  ASSERT_NE(at, std::string::npos) << config;
  write_atomically(out + "/config.yaml", config.erase(at, 15));
  train(small(), into(out, true));
  EXPECT_EQ(bytes_of(out), bytes_of(reference()));
}

TEST_F(Train, AnotherRunOrConfigIsAnError) {
  const auto out = folder_ / "run";
  killed_after(4, out);
  EXPECT_HAS(error_of([&] { train(small(), into(out)); }),
             "already holds a run | continue it with --resume, replace it with --overwrite");
  const auto error = error_of([&] {
    train(small({"train.lr=0.5", "seed=7", "train.keep=1"}), into(out, true));
  });
  EXPECT_HAS(error, "train.lr: 0.01 -> 0.5");
  EXPECT_HAS(error, "seed: 1 -> 7");
  EXPECT_EQ(error.find("keep"), std::string::npos) << error;
  train(small({"train.keep=1", "train.checkpoint_every=2"}), into(out, true));
  EXPECT_EQ(bytes_of(out), bytes_of(reference()));
}

TEST_F(Train, TwoProcessesInOneFolderIsAnError) {
  const auto out = folder_ / "run";
  killed_after(4, out);
  const int other = ::open((out + "/lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_HAS(error_of([&] { train(small(), into(out, true)); }), "another process is training in");
  ::close(other);
  train(small(), into(out, true));
}

TEST_F(Train, ADiskThatTakesNoMoreLeavesThePreviousCheckpoint) {
  const auto out = folder_ / "run";
  killed_after(4, out);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, tight{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  tight = before;
  tight.rlim_cur = 20000;  // less than the weights take
  ::setrlimit(RLIMIT_FSIZE, &tight);
  const auto error = error_of([&] { train(small(), into(out, true)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_HAS(error, "cannot write");
  EXPECT_HAS(error, "model.safetensors");
  EXPECT_GE(open(out).step, 3);
  train(small(), into(out, true));
  EXPECT_EQ(bytes_of(out), bytes_of(reference()));
}

TEST_F(Train, KeepsTheLastAndTheBest) {
  const auto result = nlohmann::json::parse(read_file(reference() + "/result.json"));
  const auto best = result.at("best_step").get<int64_t>();
  const auto run = open(reference() + "/checkpoints/best");
  EXPECT_EQ(run.step, best);
  EXPECT_EQ(open(reference()).step, kSteps);
  const training::EvaluateOptions test{.seed = uint64_t(run.config.seed)};
  const auto validation = training::validation_of(*run.task, test, run.config.train.validate);
  EXPECT_EQ(training::evaluate(*run.model, *run.task, *validation).accuracy(),
            result.at("best_validation").get<double>());
  int64_t count = 0;
  for (const auto& entry : fs::directory_iterator(reference() + "/checkpoints"))
    count += !entry.is_symlink();
  EXPECT_LE(count, 3);
}

TEST_F(Train, KeepsItsEvaluationsAsATable) {
  const auto csv = read_file(reference() + "/eval/curve.csv");
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "step,split,scaled,accuracy,loss");
  for (const char* begin : {"\n4,test,", "\n4,validation,", "\n12,test,", "\n13,validation,"})
    EXPECT_HAS(csv, begin);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 4);
}

// Weights and moments know nothing of it.
TEST_F(Train, AValidationSetChangesNoWeight) {
  train(small({"train.validate=0"}), into(folder_ / "run"));
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(bytes_of(folder_ / "run")[name], bytes_of(reference())[name]) << name;
  const auto metrics = read_file(folder_ / "run/metrics.jsonl");
  EXPECT_EQ(metrics.find("validation"), std::string::npos);
}

// What is kept is the average; what goes on is not.
TEST_F(Train, AveragedWeightsResumeToTheSameBits) {
  const auto averaged = small({"train.ema=0.9"});
  train(averaged, into(folder_ / "whole"));
  for (const int64_t n : {5, 9}) kill_after(n, averaged, into(folder_ / "killed", true));
  train(averaged, into(folder_ / "killed", true));
  EXPECT_EQ(bytes_of(folder_ / "killed"), bytes_of(folder_ / "whole"));
  EXPECT_NE(bytes_of(folder_ / "whole")["model.safetensors"],
            bytes_of(reference())["model.safetensors"]);
  const auto run = open(folder_ / "whole");
  const auto result = nlohmann::ordered_json::parse(read_file(folder_ / "whole/result.json"));
  EXPECT_EQ(to_json(training::evaluate(*run.model, *run.task, {.seed = uint64_t(run.config.seed)})),
            result.at("evaluation"))
      << "the weights that were evaluated are those that are kept";
}

// Before, between and after a decision and the batch from which it counts.
TEST_F(Train, GrowingWordsResumeToTheSameBits) {
  const auto growing = small({"train.grow_at=0.001", "train.steps=60", "train.log_every=1",
                              "train.checkpoint_every=1", "train.keep=20", "train.validate=0"});
  const std::string whole = folder_ / "whole", last = "/checkpoints/step-00000060/";
  train(growing, into(whole));
  const auto metrics = read_file(whole + "/metrics.jsonl");
  EXPECT_HAS(metrics, "\"length\":3}");
  EXPECT_HAS(metrics, "\"length\":4}");
  for (const int64_t n : {48, 49, 50, 51, 52}) {
    SCOPED_TRACE(n);
    const std::string killed = folder_ / std::to_string(n);
    kill_after(n, growing, into(killed));
    train(growing, into(killed, true));
    EXPECT_EQ(read_file(killed + "/metrics.jsonl"), metrics);
    for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"})
      EXPECT_EQ(read_file(killed + last + name), read_file(whole + last + name)) << name;
  }
}

TEST_F(Train, OpensTheFinalWeights) {
  const auto run = open(reference());
  const auto evaluation =
      training::evaluate(*run.model, *run.task, {.seed = uint64_t(run.config.seed)});
  const auto result = nlohmann::ordered_json::parse(read_file(reference() + "/result.json"));
  EXPECT_EQ(to_json(evaluation), result.at("evaluation"));
  EXPECT_EQ(to_json(evaluation_from_json(result.at("evaluation"))), result.at("evaluation"));
  EXPECT_HAS(error_of([&] { open(folder_ / "nothing"); }), "is neither a run nor a checkpoint");
}

TEST_F(Train, ReportsProgress) {
  auto options = into(folder_ / "run");
  std::vector<Progress> seen;
  options.progress = [&](const Progress& p) { seen.push_back(p); };
  train(small(), options);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().step, kSteps);
  EXPECT_EQ(seen.back().steps, kSteps);
  EXPECT_GT(seen.back().loss, 0);
  EXPECT_GE(seen.back().eval_accuracy, 0);
}

TEST_F(Train, EndlessSkippingEnds) {
  const auto wild = {"train.lr=1e38", "train.warmup=0"};
  auto overrides = std::vector<std::string>(wild.begin(), wild.end());
  EXPECT_HAS(error_of([&] { train(small(overrides), into(folder_ / "stop")); }),
             "at step 1: first in");
  overrides.push_back("train.nonfinite=skip");
  EXPECT_HAS(error_of([&] { train(small(overrides), into(folder_ / "skip")); }),
             "100 batches in a row, from step 1 on");
}

}  // namespace
}  // namespace lrnn::experiments
