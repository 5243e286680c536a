#pragma once
#include <string>

#include "experiments/through_steps.h"

namespace lrnn::cli {

// What moved through the checkpoints of a run: the decisive head's eigenvalues by letter, its keys,
// margins and errors by length. A table, a figure and a CSV file beside it; or JSON.
int show_steps(const std::string& run, const experiments::StepOptions& options,
               const std::string& out, bool json);

}  // namespace lrnn::cli
