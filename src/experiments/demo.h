#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/by_length.h"
#include "experiments/runner.h"
#include "experiments/spectrum.h"

// Four small models that differ in one thing each, trained side by side: the theory in a minute.
namespace lrnn::experiments {

struct DemoCase {
  const char *config, *task, *model;  // file under configs/demo without .yaml, and words for people
  bool can;                           // what theory says of lengths beyond training
  const char* theory;                 // and why
};
const std::vector<DemoCase>& demo_cases();

struct DemoOptions {
  std::string configs;  // the folder demo/ is in
  std::string out;
  int64_t seed = -1;                                              // -1: that of the configs
  std::function<void(const std::vector<RunProgress>&)> progress;  // one entry per case
  std::function<bool()> interrupted;
};

struct DemoRow {
  DemoCase about;
  Run run;
  double inside = 0, beyond = 0;  // scaled accuracy at the lengths of training, and of the test
  std::vector<LengthBin> bins;    // by length, or by position for tasks with answers everywhere
  std::vector<HeadSpectrum> spectrum;
  bool as_predicted() const;
};

// Trains every case in a process of its own, as many at once as there are cores, then measures.
// Empty when it was interrupted.
std::vector<DemoRow> run_demo(const DemoOptions& options);

}  // namespace lrnn::experiments
