#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/eval.h"
#include "figures/style.h"
#include "tests/experiments/folder.h"

namespace lrnn::cli {
namespace {

// Two steps of training in DIR/name.
std::string tiny_run(const TemporaryFolder& at, const std::string& name,
                     std::vector<std::string> overrides = {}) {
  overrides.emplace_back("train.steps=2");
  experiments::TrainOptions options;
  options.out = at / name;
  experiments::train(
      experiments::read_config(std::string(LRNN_SOURCE_DIR) + "/configs/tiny.yaml", overrides),
      options);
  return options.out;
}

struct Said {
  std::string text;
  Json json;
};
Said said_of(EvalArguments a) {
  Said out;
  testing::internal::CaptureStdout();
  EXPECT_EQ(evaluate_runs(a, "cpu"), kDone);
  out.text = testing::internal::GetCapturedStdout();
  a.json = true;
  testing::internal::CaptureStdout();
  EXPECT_EQ(evaluate_runs(a, "cpu"), kDone);
  out.json = Json::parse(testing::internal::GetCapturedStdout());
  return out;
}

size_t lines_in(const std::string& file) {
  const auto text = read_file(file);
  return size_t(std::count(text.begin(), text.end(), '\n'));
}

TEST(EvalRuns, ShortNamesTellFoldersApart) {
  EXPECT_EQ(short_names({"runs/a", "runs/b/"}), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(short_names({"x/mamba/seed1", "x/delta/seed1"}),
            (std::vector<std::string>{"mamba/seed1", "delta/seed1"}));
  EXPECT_EQ(short_names({"one"}), (std::vector<std::string>{"one"}));
  EXPECT_EQ(short_names({"/a/c", "a/c"}).size(), 2u);
}

TEST(EvalRuns, TwoLengthsAreTheseTwo) {
  const TemporaryFolder at;
  EvalArguments a;
  a.runs = {tiny_run(at, "a")}, a.samples = 65, a.length = parse_lengths("4,9");
  const auto said = said_of(a);
  ASSERT_EQ(said.json["lengths"].size(), 2u);
  EXPECT_EQ(said.json["lengths"][0]["low"], 4);
  EXPECT_EQ(said.json["lengths"][0]["count"], 33);
  EXPECT_EQ(said.json["lengths"][1]["high"], 9);
  EXPECT_EQ(said.json["lengths"][1]["count"], 32);
  EXPECT_EQ(said.json["evaluation"]["count"], 65);
  EXPECT_HAS(said.text, "65 sequences of length 4 and 9");
  EXPECT_EQ(lines_in(a.runs[0] + "/eval/length.csv"), 3u) << "the head and two lengths";
  a.samples = 1;
  const auto before = read_file(a.runs[0] + "/eval/length.csv");
  EXPECT_HAS(error_of([&] { evaluate_runs(a, "cpu"); }), "too few for 2 lengths");
  EXPECT_EQ(read_file(a.runs[0] + "/eval/length.csv"), before);
}

TEST(EvalRuns, TwoLengthsOfATaskWithManyAnswers) {
  const TemporaryFolder at;
  EvalArguments a;
  a.runs = {tiny_run(at, "a",
                     {"task={name: group, group: S3, train: {length: 8, set: 100}, "
                      "eval: {length: 20, samples: 50}}"})};
  a.length = parse_lengths("1,5");
  auto said = said_of(a);
  ASSERT_EQ(said.json["lengths"].size(), 2u) << "whole sequences, not positions";
  EXPECT_GE(said.json["lengths"][0]["right"], said.json["lengths"][1]["right"]);
  a.length = parse_lengths("5");
  said = said_of(a);
  EXPECT_EQ(said.json["positions"].size(), 6u) << "the beginning and five";
}

TEST(EvalRuns, TwinsStandInOneTableAndOneFigure) {
  const TemporaryFolder at;
  EvalArguments a;
  a.runs = {tiny_run(at, "positive", {"model.mixer.range=[0, 1]"}), tiny_run(at, "both")};
  a.samples = 40, a.length = parse_lengths("4,9");
  const auto said = said_of(a);
  EXPECT_HAS(said.text, "positive: DeltaNet [0,1]");
  EXPECT_HAS(said.text, "both: DeltaNet [-1,1]");
  ASSERT_EQ(said.json["runs"].size(), 2u);
  EXPECT_EQ(said.json["figure"], a.runs[0] + "/figures/lengths.svg");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(said.json["runs"][i]["run"], a.runs[i]);
    EXPECT_EQ(said.json["runs"][i]["lengths"].size(), 2u);
    EXPECT_EQ(lines_in(a.runs[i] + "/eval/length.csv"), 3u);
    EXPECT_HAS(read_file(a.runs[i] + "/figures/length.svg"), "<svg");
    // The same as by itself.
    auto one = a;
    one.runs = {a.runs[i]};
    auto alone = said_of(one).json;
    EXPECT_EQ(alone["lengths"], said.json["runs"][i]["lengths"]);
  }
  const auto svg = read_file(a.runs[0] + "/figures/lengths.svg");
  const std::string colour = figures::style_of("delta_net").colour;
  EXPECT_HAS(svg, "positive: DeltaNet [0,1]");
  EXPECT_HAS(svg, "stroke=\"" + colour + "\" stroke-width=\"2\" stroke-linejoin=\"round\"/>");
  EXPECT_HAS(svg, "stroke=\"" + colour +
                      "\" stroke-width=\"2\" stroke-linejoin=\"round\" stroke-dasharray=\"7 4\"/>");
  a.out = at / "deep/twins.svg";
  EXPECT_EQ(said_of(a).json["figure"], a.out);
  EXPECT_HAS(read_file(a.out), "<svg");
}

TEST(EvalRuns, OtherTasksAreRefusedAndNothingIsWritten) {
  const TemporaryFolder at;
  const std::string parity = tiny_run(at, "parity"),
                    group = tiny_run(at, "group",
                                     {"task={name: group, group: S3, train: {length: 8, set: 100}, "
                                      "eval: {length: 20, samples: 50}}"});
  EvalArguments a;
  a.runs = {parity, group};
  EXPECT_HAS(error_of([&] { evaluate_runs(a, "cpu"); }), "have different tasks: parity and group");
  EXPECT_FALSE(std::filesystem::exists(parity + "/eval/length.csv"));
  a.runs = {group, tiny_run(at, "other group",
                            {"task={name: group, group: S4, train: {length: 8, set: 100}, "
                             "eval: {length: 20, samples: 50}}"})};
  EXPECT_HAS(error_of([&] { evaluate_runs(a, "cpu"); }),
             "have different tasks: group with group: S3 -> S4");
  a.runs = {parity, parity};
  EXPECT_HAS(error_of([&] { evaluate_runs(a, "cpu"); }), "named twice");
  // Other lengths and numbers of sequences are no other task.
  a.runs = {parity, tiny_run(at, "longer", {"task.train.length=[3, 20]", "task.eval.samples=8"})};
  a.samples = 0;
  const auto said = said_of(a);
  EXPECT_EQ(said.json["runs"][0]["evaluation"]["count"],
            said.json["runs"][1]["evaluation"]["count"])
      << "the same sequences for all";
  EXPECT_HAS(read_file(parity + "/figures/lengths.svg"), "longest in training: 12, 20");
  a.accuracies = {"exact", "fast"};
  EXPECT_HAS(error_of([&] { evaluate_runs(a, "cpu"); }), "one run at a time");
}

TEST(EvalTable, ACurveWithoutALengthHasADashThere) {
  Measured one, two;
  one.bins = {{3, 3, {1, 2}, 0, 1}, {9, 9, {2, 2}, 0, 1}};
  two.bins = {{9, 9, {1, 2}, 0, 1}};
  const auto style = figures::style(0);
  EXPECT_EQ(side_by_side({{"a", &one, style, nullptr}, {"b", &two, style, nullptr}}, 9, 2).csv(),
            "length,sequences,a,b\n3,2,0.50,–\n9,2,1.00,0.50\n");
}

}  // namespace
}  // namespace lrnn::cli
