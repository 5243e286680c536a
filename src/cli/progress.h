#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "experiments/run.h"
#include "experiments/runner.h"

namespace lrnn::cli {

// Shows how training goes, on stderr: a bar that redraws itself on a terminal, a line now and then
// elsewhere.
class ProgressBar {
 public:
  explicit ProgressBar(bool quiet);
  ~ProgressBar() { clear(); }
  void show(const experiments::Progress& progress);
  void show(const std::string& line);  // the same for a line made elsewhere; terminals only
  void clear();                        // takes the bar away, before something else is printed
  bool bar() const { return bar_; }
  // Whether enough time has passed for one more plain line.
  bool due(bool news);

 private:
  bool quiet_, bar_, drawn_ = false;
  double seconds_left(const experiments::Progress& progress);

  double eval_shown_ = -1;
  int64_t first_step_ = -1;
  std::chrono::steady_clock::time_point last_, begin_;
};

// "loss 0.6931  accuracy 0.500  eval 0.512"
std::string learned(const experiments::Progress& progress);
// The first `width` letters, so that a narrow terminal does not wrap a line into a heap.
std::string cut_line(const std::string& text, int width);
// "[██████░░░░]"
std::string filled_bar(double share, int width);

// One line per running job and one for all of them, on stderr: redrawn in place on a terminal,
// printed now and then elsewhere.
class RunsProgress {
 public:
  RunsProgress(const experiments::Suite& suite, const std::vector<experiments::PlannedRun>& runs,
               int64_t jobs, bool quiet);
  ~RunsProgress() { clear(); }
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
