#pragma once
#include "cli/eval_measure.h"

// One run or several: measured, printed, and written beside each run.
namespace lrnn::cli {

// Short names that tell the folders apart: their last parts, with as much before as it takes.
std::vector<std::string> short_names(const std::vector<std::string>& folders);

// Measures all, then writes eval/length.csv and figures/length.svg of every run, and of several the
// common figure. An Error when the runs do not answer the same questions; nothing is written then.
int evaluate_runs(const EvalArguments& arguments, const std::string& device);

}  // namespace lrnn::cli
