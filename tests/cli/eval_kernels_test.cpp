#include <gtest/gtest.h>

#include <sstream>

#include "cli/command.h"
#include "cli/eval.h"
#include "tests/experiments/folder.h"

// The comparison of kernels. A CPU has one, which is enough to see what is written and that the
// same sequences are asked of all.
namespace lrnn::cli {
namespace {

std::string trained_in(const TemporaryFolder& folder, const std::vector<std::string>& overrides) {
  const std::string run = folder / "run";
  experiments::TrainOptions options;
  options.out = run;
  experiments::train(
      experiments::read_config(std::string(LRNN_SOURCE_DIR) + "/configs/tiny.yaml", overrides),
      options);
  return run;
}

std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(csv);
  for (std::string line, cell; std::getline(lines, line);) {
    out.emplace_back();
    for (std::istringstream cells(line); std::getline(cells, cell, ',');)
      out.back().push_back(cell);
  }
  return out;
}

TEST(EvalKernels, AreComparedOnTheSameSequences) {
  const TemporaryFolder folder;
  const std::string run = trained_in(folder, {"train.steps=2"});
  auto opened = experiments::open(run);
  EvalArguments a;
  a.runs = {run}, a.accuracies = {"exact", "fast"}, a.samples = 200, a.length.range = {3, 60};
  ASSERT_EQ(compare_kernels(opened, a), kDone);
  const auto cells = cells_of(read_file(run + "/eval/kernels.csv"));
  ASSERT_GT(cells.size(), 3u);
  EXPECT_EQ(cells[0], (std::vector<std::string>{"length", "sequences", "float32 recurrence",
                                                "bfloat16 exact", "bfloat16 fast"}));
  int64_t sequences = 0;
  for (size_t i = 1; i < cells.size(); ++i) {
    sequences += std::stoll(cells[i][1]);
    EXPECT_EQ(cells[i][3], cells[i][4]) << "one kernel, two names";
  }
  EXPECT_EQ(sequences, 200);
  EXPECT_HAS(read_file(run + "/eval/kernels.md"), "| bfloat16 fast |");
  for (const char* name : {"float32 recurrence", "bfloat16 exact", "bfloat16 fast"})
    EXPECT_HAS(read_file(run + "/figures/kernels.svg"), name);
  a.precision = "float32";
  EXPECT_HAS(error_of([&] { compare_kernels(opened, a); }), "always get the exact kernel");
}

// A task with an answer at every position: one row per position, and they never rise.
TEST(EvalKernels, OfPrefixes) {
  const TemporaryFolder folder;
  const std::string run =
      trained_in(folder, {"train.steps=2",
                          "task={name: group, group: S3, train: {length: 8, set: "
                          "100}, eval: {length: 20, samples: 50}}"});
  auto opened = experiments::open(run);
  EvalArguments a;
  a.runs = {run}, a.accuracies = {"exact", "accurate", "fast"};
  ASSERT_EQ(compare_kernels(opened, a), kDone);
  const auto cells = cells_of(read_file(run + "/eval/kernels.csv"));
  ASSERT_EQ(cells.size(), 22u);  // the beginning and 20 tokens, and the head
  EXPECT_EQ(cells[0][0], "position");
  for (size_t i = 2; i < cells.size(); ++i)
    for (size_t j = 2; j < cells[i].size(); ++j)
      EXPECT_LE(std::stod(cells[i][j]), std::stod(cells[i - 1][j]));
}

}  // namespace
}  // namespace lrnn::cli
