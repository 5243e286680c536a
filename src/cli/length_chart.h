#pragma once
#include <string>
#include <vector>

#include "experiments/by_length.h"
#include "tasks/task.h"

namespace lrnn::cli {

struct LengthCurve {
  std::string name;
  const std::vector<experiments::LengthBin>* bins;
  double chance;  // drawn as 0
};

// Accuracy by length, or of all prefixes up to a position, with the longest of training marked.
std::string length_chart(const std::string& title, const tasks::Task& task,
                         const std::vector<LengthCurve>& curves);

}  // namespace lrnn::cli
