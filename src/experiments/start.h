#pragma once
#include "experiments/run.h"

// Runs that begin with weights from elsewhere.
namespace lrnn::experiments {

// A run folder at step 0 with the weights of `model`: it is opened, and its training goes on, like
// that of any other.
void write_start(const std::string& folder, const RunConfig& config, model::Model& model,
                 const tasks::Task& task, bool overwrite = false);

// The same with the weights of the run or checkpoint `from`, which may have been compiled and is
// the result. With `overwrite` a run in the folder makes room.
Run start_from(const std::string& from, const std::string& folder, const RunConfig& config,
               bool overwrite = false);

}  // namespace lrnn::experiments
