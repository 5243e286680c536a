#pragma once
#include <string>
#include <vector>

#include "experiments/published.h"
#include "experiments/run.h"

// Which runs a published table is made of, and which of them are there already.
namespace lrnn::experiments {

struct PlanOptions {
  std::string configs, out;
  int64_t seeds = 3;
  double scale = 1;               // of the number of steps
  bool lr_grid = false;           // train with every rate of the grid
  std::vector<std::string> keys;  // overrides for every run
};

// The rates among which the papers chose by the median over seeds.
const std::vector<double>& lr_grid();

struct PlannedRun {
  size_t cell = 0;
  int64_t seed = 0;
  double lr = 0;
  std::string folder, config;          // the config's file
  std::vector<std::string> overrides;  // of its keys
  RunConfig resolved;
  bool lengths = true;  // measure accuracy by length after training, where the task has lengths
};

// The folder of a suite's runs and reports; shortened runs have one of their own.
std::string suite_folder(const Suite& suite, const PlanOptions& options);
std::vector<PlannedRun> plan(const Suite& suite, const PlanOptions& options);

// Trained and measured to the end, with this very config.
bool finished(const PlannedRun& run);
// Measured by length after training: result.json has the lengths of the test only.
bool wants_lengths(const PlannedRun& run);
std::string lengths_file(const PlannedRun& run);
// Somebody trains in its folder at this moment.
bool busy(const PlannedRun& run);

}  // namespace lrnn::experiments
