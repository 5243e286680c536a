#pragma once
#include <string>

#include "cli/train_arguments.h"

namespace lrnn::cli {

// Trains the config with several seeds, a run folder for each, and sums them up. The result is the
// exit code.
int train_seeds(const TrainArguments& arguments, const std::string& device);

}  // namespace lrnn::cli
