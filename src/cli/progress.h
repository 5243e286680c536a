#pragma once
#include <chrono>
#include <string>

#include "experiments/run.h"

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

}  // namespace lrnn::cli
