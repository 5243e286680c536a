#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/plan.h"

// Trains several runs, some at once: all that a published table is made of, the seeds of a config,
// the models of the demo. One that fails takes nothing with it; runs that are finished are left
// alone, others go on where they were.
namespace lrnn::experiments {

struct RunProgress {
  enum State { kWaiting, kRunning, kMeasuring, kDone, kFailed } state = kWaiting;
  Progress now = {};                       // what the run last said of itself
  std::string error = {};                  // why it failed
  std::vector<std::string> warnings = {};  // such as damaged checkpoints that were passed over
};

struct RunnerOptions {
  std::string program = {};  // the `lrnn` to run; empty: this one
  std::string device = "cpu";
  int64_t jobs = 1;                          // runs at once
  int64_t threads = 0;                       // of the CPU for each; 0: what it takes by itself
  bool extend = false, tensorboard = false;  // as in TrainOptions
  bool force = false;                        // whatever the memory
  // Now and then; `finished` says that a run has ended since the last call.
  std::function<void(const std::vector<RunProgress>&, bool finished)> progress = {};
  std::function<bool()> interrupted = {};
};

// How many of these runs fit at once: one per core, and as many as the memory allows.
int64_t jobs_that_fit(const std::vector<PlannedRun>& runs, const std::string& device);

// One entry per run. Stopped early when `interrupted` says so; everything is saved then.
std::vector<RunProgress> run_all(const std::vector<PlannedRun>& runs, const RunnerOptions& options);

// Seconds until all is done, from what is known about the runs; -1: not known.
double seconds_left(const std::vector<PlannedRun>& runs, const std::vector<RunProgress>& progress,
                    int64_t jobs);

}  // namespace lrnn::experiments
