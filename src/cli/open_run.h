#pragma once
#include <string>

#include "experiments/run.h"

namespace lrnn::cli {

// Opens a run or a checkpoint for a command. Checkpoints that are damaged and passed over are named
// on stderr; with --json the command repeats them as "damaged".
experiments::Run open_run(const std::string& folder);
// The same for a run that somebody else has opened.
void warn_of_damage(const experiments::Run& run);

}  // namespace lrnn::cli
