#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "experiments/runner.h"

namespace lrnn::cli {

// One line per running job and one for all of them, on stderr: redrawn in place on a terminal,
// printed now and then elsewhere.
class ReproduceProgress {
 public:
  ReproduceProgress(const experiments::Suite& suite,
                    const std::vector<experiments::PlannedRun>& runs, int64_t jobs, bool quiet);
  ~ReproduceProgress() { clear(); }
  void show(const std::vector<experiments::RunProgress>& all, bool now);
  void clear();

 private:
  std::vector<std::string> lines(const std::vector<experiments::RunProgress>& all) const;

  const experiments::Suite& suite_;
  const std::vector<experiments::PlannedRun>& runs_;
  int64_t jobs_;
  bool quiet_, terminal_;
  size_t drawn_ = 0;
  std::chrono::steady_clock::time_point last_;
};

// "parity, Mamba [0,1], seed 42"
std::string run_name(const experiments::Suite& suite, const experiments::PlannedRun& run,
                     bool with_lr);

}  // namespace lrnn::cli
