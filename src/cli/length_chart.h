#pragma once
#include <string>
#include <vector>

#include "experiments/by_length.h"
#include "figures/style.h"
#include "tasks/task.h"

namespace lrnn::cli {

struct LengthCurve {
  std::string name;
  const std::vector<experiments::LengthBin>* bins;
  double chance;  // drawn as 0
  figures::Style style;
  const tasks::Task* task;
};

// Accuracy by length, or with `positions` of all prefixes up to a position, with the longest of
// training marked. The curves are of tasks with one score.
std::string length_chart(const std::string& title, bool positions,
                         const std::vector<LengthCurve>& curves);

}  // namespace lrnn::cli
