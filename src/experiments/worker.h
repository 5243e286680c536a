#pragma once
#include <memory>
#include <string>
#include <vector>

#include "experiments/child.h"
#include "experiments/runner.h"

namespace lrnn::experiments {

// One run under way: training, then accuracy by length.
class Worker {
 public:
  Worker(const PlannedRun& run, size_t index, const RunnerOptions& options);

  size_t index() const { return index_; }
  void stop();
  bool look(RunProgress& progress);  // at how it goes; false once it has ended

 private:
  void start(std::vector<std::string> words, const std::string& out);
  void measure(RunProgress& progress);
  std::string partial() const { return lengths_file(run_) + ".partial"; }

  const PlannedRun& run_;
  size_t index_;
  const RunnerOptions& options_;
  std::unique_ptr<Child> child_;  // that trains, then the one that measures
  bool measuring_ = false, stopped_ = false;
};

}  // namespace lrnn::experiments
