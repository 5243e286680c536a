#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "experiments/folder.h"
#include "experiments/metrics.h"
#include "experiments/outcome.h"
#include "experiments/runner.h"
#include "tests/experiments/folder.h"

namespace lrnn::experiments {
namespace {

const std::string kReproduceConfigs = LRNN_SOURCE_DIR "/configs";

TEST(Statistics, AreThoseOfThePapers) {
  const auto three = summarise({0.2, 1.0, 0.9});
  EXPECT_DOUBLE_EQ(three.best, 1.0);
  EXPECT_DOUBLE_EQ(three.median, 0.9);
  EXPECT_NEAR(three.mad, 0.1, 1e-12);  // distances 0.7, 0.1, 0: the middle one, not scaled
  const auto two = summarise({0.5, 0.7});
  EXPECT_DOUBLE_EQ(two.median, 0.6);
  EXPECT_NEAR(two.mad, 0.1, 1e-12);
  EXPECT_TRUE(std::isnan(summarise({}).median));
}

TEST(PublishedNumbers, EveryCellHasAConfigOfItsOwn) {
  for (const auto& suite : read_suites(kReproduceConfigs)) {
    std::set<std::string> folders, names;
    EXPECT_FALSE(suite.source.empty());
    for (const auto& cell : suite.cells) {
      EXPECT_TRUE(std::filesystem::exists(kReproduceConfigs + "/" + cell.config + ".yaml"))
          << cell.config;
      folders.insert(std::filesystem::path(cell.config).filename());
      names.insert(cell.task + cell.model);
    }
    EXPECT_EQ(folders.size(), suite.cells.size()) << "two cells of " << suite.name << " share runs";
    EXPECT_EQ(names.size(), suite.cells.size());
  }
}

// The number in the first lines of a config is the one in the table.
TEST(PublishedNumbers, ConfigsSayTheSame) {
  for (const auto& suite : read_suites(kReproduceConfigs))
    for (const auto& cell : suite.cells) {
      if (suite.name == "groups" || std::isnan(cell.published.best)) continue;
      char number[16];
      std::snprintf(number, sizeof number, "%.3f", cell.published.best);
      const auto text = read_file(kReproduceConfigs + "/" + cell.config + ".yaml");
      EXPECT_HAS(text.substr(0, text.find("\nseed:")), number) << cell.config;
    }
}

TEST(Only, ChoosesTasksAndModels) {
  Suite suite{"x", "", "", "", {}};
  for (const char* task : {"parity", "modular arithmetic"})
    for (const char* model : {"Mamba [0,1]", "DeltaNet [-1,1]", "sLSTM"})
      suite.cells.push_back({task, model, std::string("c/") + task, 0, {}, "", {}, {}});
  EXPECT_EQ(only(suite, "parity").cells.size(), 3u);
  EXPECT_EQ(only(suite, "parity,mamba").cells.size(), 1u);
  EXPECT_EQ(only(suite, "mamba,delta_net").cells.size(), 4u);
  EXPECT_EQ(only(suite, "Modular Arithmetic,SLSTM").cells.size(), 1u);
  EXPECT_EQ(only(suite, "[-1,1]").cells.size(), 2u);
  EXPECT_EQ(only(suite, "parity,[-1, 1],[0,1]").cells.size(), 2u);
  EXPECT_EQ(only(suite, "DeltaNet [-1,1],parity").cells.size(), 1u);
  EXPECT_HAS(error_of([&] { only(suite, "parity,-1"); }), "'-1' names neither");
  EXPECT_HAS(error_of([&] { only(suite, "parity,[-1,0]"); }), "'[-1,0]' names neither");
  EXPECT_EQ(error_of([&] { only(suite, "parity,gru"); }),
            "'gru' names neither a task nor a model of x | `lrnn reproduce x --list` shows them");
}

Suite tiny_suite() { return {"t", "", "", "", {{"parity", "tiny", "tiny", 0, {}, "", {}, {}}}}; }

TEST(Plan, CoversSeedsRatesAndScale) {
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, "o", 2, 0.5, true, {"train.batch=4"}});
  ASSERT_EQ(runs.size(), 8u);
  std::set<std::string> folders;
  for (const auto& run : runs) {
    folders.insert(run.folder);
    EXPECT_EQ(run.resolved.train.steps, 10);
    EXPECT_EQ(run.resolved.train.warmup, 1);
    EXPECT_EQ(run.resolved.train.batch, 4);
    EXPECT_EQ(run.resolved.train.lr, run.lr);
    EXPECT_EQ(run.resolved.seed, run.seed);
  }
  EXPECT_EQ(folders.size(), 8u);
  EXPECT_EQ(runs[0].folder, "o/t-scale0.5/tiny/lr0.01-seed1");
  EXPECT_EQ(runs[1].seed, 2);
  EXPECT_EQ(plan(tiny_suite(), {kReproduceConfigs, "o", 1, 1, false, {}})[0].folder,
            "o/t/tiny/seed1");
  for (const double scale : {0.0, -1.0, 1.5})
    EXPECT_THROW(plan(tiny_suite(), {kReproduceConfigs, "o", 1, scale, false, {}}), Error);
}

// A run folder as training leaves it behind.
void pretend(const PlannedRun& run, int64_t right, int64_t step = -1) {
  std::filesystem::create_directories(run.folder + "/eval");
  write(run.folder + "/config.yaml", print_config(run.resolved));
  training::Evaluation e;
  e.sequences = {right, 100};
  e.by_length[20] = e.sequences;
  e.chance = 0.5;
  const int64_t steps = step < 0 ? run.resolved.train.steps : step;
  write(run.folder + "/result.json", nlohmann::ordered_json{{"step", steps},
                                                            {"best_accuracy", e.accuracy()},
                                                            {"seconds", 2.0},
                                                            {"evaluation", to_json(e)}}
                                         .dump());
  write(run.folder + "/metrics.jsonl",
        "{\"kind\":\"train\",\"step\":5}\n{\"kind\":\"eval\",\"step\":10,\"scaled\":0.25}\n");
  write(lengths_file(run), "{\"lengths\":[{\"low\":12,\"high\":14,\"scaled\":0.5}]}");
}

TEST(Finished, MeansThisConfigToItsEnd) {
  TemporaryFolder at;
  const auto run = plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}})[0];
  EXPECT_FALSE(finished(run));
  pretend(run, 90, 19);
  EXPECT_FALSE(finished(run)) << "not at the last step";
  pretend(run, 90);
  EXPECT_TRUE(finished(run));
  const auto other =
      plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {"train.lr=1"}})[0];
  EXPECT_FALSE(finished(other)) << "another config";
  auto early =
      plan(tiny_suite(), {kReproduceConfigs, at / "e", 1, 1, false, {"train.stop_at=.8"}})[0];
  pretend(early, 90, 19);
  EXPECT_TRUE(finished(early)) << "accurate enough before";
  pretend(early, 70, 19);
  EXPECT_FALSE(finished(early)) << "neither accurate enough nor at the last step";
  std::filesystem::remove(lengths_file(run));
  EXPECT_FALSE(finished(run)) << "not measured by length";
  auto unmeasured = run;
  unmeasured.lengths = false;
  EXPECT_TRUE(finished(unmeasured)) << "which is not wanted";
}

// A program that trains nothing but does what training might.
std::string pretender(const TemporaryFolder& at, const std::string& script) {
  write(at / "program", "#!/bin/sh\n" + script);
  std::filesystem::permissions(at / "program", std::filesystem::perms::owner_all);
  return at / "program";
}

const char* const kFails =
    "echo '{\"kind\":\"warning\",\"text\":\"a byte has changed\"}' >&3\n"
    "echo '{\"kind\":\"error\",\"text\":\"no\"}' >&3\nexit 2\n";

TEST(Runner, PassesOnWhatTheRunsSay) {
  TemporaryFolder at;
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}});
  for (int again = 0; again < 2; ++again) {
    const auto all = run_all(runs, {.program = pretender(at, kFails), .jobs = 1});
    EXPECT_EQ(all[0].state, RunProgress::kFailed);
    EXPECT_EQ(all[0].error, "no");
    EXPECT_EQ(all[0].warnings, std::vector<std::string>{"a byte has changed"});
  }
}

TEST(Runner, ShowsTheLastProgressAndPassesOverWhatIsNone) {
  TemporaryFolder at;
  auto runs = plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}});
  runs[0].lengths = false;
  const auto program = pretender(at,
                                 "echo 'step 1/2  3.0 steps/s' >&3\n"
                                 "printf '{\"kind\":\"progress\",\"step\":7,' >&3\n"
                                 "sleep 0.5\n"
                                 "echo '\"steps\":20,\"loss\":0.25}' >&3\n"
                                 "for i in $(seq 50); do [ -e \"$5/go\" ] || sleep 0.1; done\n");
  bool seen = false;
  const auto all = run_all(
      runs, {.program = program, .progress = [&](const std::vector<RunProgress>& now, bool) {
               if (now[0].now.step != 7) return;
               seen = true;
               EXPECT_EQ(now[0].now.loss, 0.25);
               EXPECT_TRUE(std::isnan(now[0].now.accuracy));
               write(runs[0].folder + "/go", "");
             }});
  EXPECT_TRUE(seen);
  EXPECT_EQ(all[0].state, RunProgress::kDone);
  EXPECT_EQ(all[0].now.step, 20);
}

TEST(Runner, SaysHowARunEndedThatSaidNothing) {
  TemporaryFolder at;
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}});
  const auto error = [&](const std::string& script) {
    return run_all(runs, {.program = pretender(at, script)})[0].error;
  };
  EXPECT_EQ(error("exit 3\n"), "it ended with exit code 3 and did not say why");
  EXPECT_EQ(error("kill -9 $$\n"), "the process was ended by signal 9");
  EXPECT_EQ(run_all(runs, {.program = at / "none"})[0].error, "the program could not be started");
}

TEST(Runner, StopsEveryRunOnceAndStartsNoOther) {
  TemporaryFolder at;
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, at / "o", 3, 1, false, {}});
  const auto program = pretender(at, "trap 'exit 130' INT\necho x >>\"" + at / "started" +
                                         "\"\nwhile :; do sleep 0.1; done\n");
  const auto count = [&] {
    return std::filesystem::exists(at / "started") ? std::filesystem::file_size(at / "started") : 0;
  };
  const auto all =
      run_all(runs, {.program = program, .jobs = 2, .interrupted = [&] { return count() == 4; }});
  EXPECT_EQ(count(), 4u);
  for (const auto& run : all) EXPECT_EQ(run.state, RunProgress::kWaiting);
}

// The numbers would be of a run with two schedules.
TEST(Runner, ExtendsNothingUnlessAskedTo) {
  TemporaryFolder at;
  const auto runs =
      plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {"train.steps=30"}});
  pretend(plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}})[0], 90);
  RunnerOptions options{.program = pretender(at, kFails), .jobs = 1};
  EXPECT_HAS(run_all(runs, options)[0].error, "is not the config given now: train.steps: 20 -> 30");
  EXPECT_FALSE(std::filesystem::exists(runs[0].folder + "/train.log")) << "it was not even started";
  options.extend = true;
  EXPECT_EQ(run_all(runs, options)[0].error, "no");
}

TEST(Outcomes, ChooseTheRateByItsMedian) {
  TemporaryFolder at;
  auto suite = tiny_suite();
  suite.cells[0].published = {1, 0.9, 0.01};
  const auto runs = plan(suite, {kReproduceConfigs, at / "o", 3, 1, true, {}});
  // Rate 1e-2 has the best run, 1e-3 the best median; of 5e-4 nothing is done.
  for (const auto& run : runs) {
    if (run.lr == 1e-2) pretend(run, run.seed == 1 ? 100 : 50);
    if (run.lr == 1e-3) pretend(run, 78 + run.seed);
    if (run.lr == 1e-4) pretend(run, 50);
  }
  const auto cells = outcomes(suite, runs);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0].lr, 1e-3);
  EXPECT_NEAR(cells[0].ours.best, 0.62, 1e-9);
  EXPECT_NEAR(cells[0].ours.median, 0.60, 1e-9);
  EXPECT_NEAR(cells[0].ours.mad, 0.02, 1e-9);
  EXPECT_EQ(cells[0].seconds, 18);
  ASSERT_TRUE(cells[0].middle());
  EXPECT_EQ(cells[0].middle()->seed, 2);
  EXPECT_EQ(cells[0].middle()->training, (Curve{{10, 0.25}}));
  EXPECT_EQ(cells[0].middle()->lengths, (Curve{{13, 0.5}}));
  EXPECT_EQ(remark(cells[0]), "lower by 0.300");
}

// Who chooses on the test reports more than who does not.
TEST(Outcomes, ChooseTheStepOnTheValidationSet) {
  TemporaryFolder at;
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, at / "o", 2, 1, false, {}});
  for (const auto& run : runs) {
    pretend(run, 90);
    write(run.folder + "/metrics.jsonl",
          R"({"kind":"eval","step":5,"scaled":0.3,"validation":{"scaled":0.4}})"
          "\n"
          R"({"kind":"eval","step":10,"scaled":0.5,"validation":{"scaled":0.6}})"
          "\n"
          R"({"kind":"eval","step":15,"scaled":0.9,"validation":{"scaled":0.6}})"
          "\n");
  }
  auto cell = outcomes(tiny_suite(), runs)[0];
  ASSERT_TRUE(cell.runs[0].chosen);
  EXPECT_EQ(cell.runs[0].chosen->step, 10) << "the first of the best";
  EXPECT_EQ(cell.runs[0].chosen->score, 0.5);
  EXPECT_EQ(cell.chosen.median, 0.5);
  EXPECT_EQ(cell.runs[0].validation, (Curve{{5, 0.4}, {10, 0.6}, {15, 0.6}}));
  pretend(runs[1], 90);  // whose lines know of no validation
  cell = outcomes(tiny_suite(), runs)[0];
  EXPECT_FALSE(cell.runs[1].chosen);
  EXPECT_TRUE(std::isnan(cell.chosen.best)) << "half of the seeds are not the table";
}

TEST(Outcomes, ScoreThePrefixThatTheCellNames) {
  TemporaryFolder at;
  const auto run = plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}})[0];
  pretend(run, 90);
  write(run.folder + "/metrics.jsonl",
        R"({"kind":"eval","step":5,"scaled":0,"prefix":{"2":0.5,"4":0.25}})");
  EXPECT_EQ(read_outcome(run, 4).training, (Curve{{5, 0.25}}));
  EXPECT_EQ(read_outcome(run, 0).training, (Curve{{5, 0}}));
}

TEST(Outcomes, RemarkOnlyWhatIsBeyondTheSpread) {
  CellOutcome cell;
  cell.ours = {0.9, 0.8, 0.1};
  cell.cell.published = {0.97, 0.82, 0.15};
  EXPECT_EQ(remark(cell), "");
  cell.cell.published = {0.97, 0.5, 0.15};
  EXPECT_EQ(remark(cell), "higher by 0.300");
  cell.cell.published = {0.97, Summary::kNothing, Summary::kNothing};  // best against best
  EXPECT_EQ(remark(cell), "");
  cell.ours.mad = 0.01;
  EXPECT_EQ(remark(cell), "lower by 0.070");
  cell.cell.published = {};
  EXPECT_EQ(remark(cell), "");
}

// A seed that guesses is lower than published by less than guessing varies.
TEST(Outcomes, AllowWhatTheNumberOfSequencesDoes) {
  CellOutcome cell;
  cell.cell.published = {0.017, 0.010, 0.005};
  cell.ours = summarise({-0.021});
  Outcome run;
  run.done = true, run.score = -0.021, run.sequences = 8192;
  cell.runs = {run};
  EXPECT_NEAR(spread(cell), 0.005 + 0.011, 1e-4);
  EXPECT_EQ(remark(cell), "lower by 0.031");
  cell.runs[0].sequences = 1024;
  EXPECT_NEAR(spread(cell), 0.005 + 0.011 * std::sqrt(8.0), 2e-4);
  EXPECT_EQ(remark(cell), "");
  cell.runs[0].done = false;
  EXPECT_EQ(cell.sequences(), 8192) << "nothing is measured yet";
  run.sequences = 2048;
  cell.runs = {run, run};
  cell.runs[1].sequences = 512;
  EXPECT_EQ(cell.sequences(), 512) << "the fewest count";
}

TEST(Outcomes, CountTheSequencesOfTheTest) {
  TemporaryFolder at;
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, at / "o", 1, 1, false, {}});
  pretend(runs[0], 90);
  const auto cells = outcomes(tiny_suite(), runs);
  EXPECT_EQ(cells[0].sequences(), 100);
  EXPECT_EQ(cells[0].key, "delta_net [-1,1]");
}

TEST(JobsThatFit, AreAsManyAsTheMemoryAllows) {
  auto runs = plan(tiny_suite(), {kReproduceConfigs, "o", 4, 1, false, {}});
  const int64_t jobs = jobs_that_fit(runs, "cpu");
  EXPECT_GE(jobs, 1);
  EXPECT_LE(jobs, std::max<int64_t>(1, std::thread::hardware_concurrency()));
  // A run that no machine has room for is tried alone.
  runs.push_back(runs.front());
  runs.back().config = "another";
  runs.back().resolved =
      read_config(kReproduceConfigs + "/tiny.yaml", {"model.width=1e6", "model.mlp.hidden=1e6"});
  EXPECT_EQ(jobs_that_fit(runs, "cpu"), 1);
}

TEST(SecondsLeft, ComeFromTheRunsThatAreKnown) {
  const auto runs = plan(tiny_suite(), {kReproduceConfigs, "o", 4, 1, false, {}});
  std::vector<RunProgress> p(4);
  for (auto& one : p) one.now.steps = 20;
  EXPECT_EQ(seconds_left(runs, p, 2), -1);
  p[0].state = RunProgress::kRunning;
  p[0].now.step = 10, p[0].now.steps_per_second = 2;
  EXPECT_NEAR(seconds_left(runs, p, 1), 5 + 3 * 10, 1e-9);
  EXPECT_NEAR(seconds_left(runs, p, 2), 35 / 2.0, 1e-9);
  EXPECT_NEAR(seconds_left(runs, p, 100), 10, 1e-9) << "never less than the longest run";
  p[1].state = p[2].state = RunProgress::kFailed, p[3].state = RunProgress::kDone;
  EXPECT_NEAR(seconds_left(runs, p, 2), 5, 1e-9);
}

}  // namespace
}  // namespace lrnn::experiments
