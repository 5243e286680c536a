#pragma once
#include <string>

#include "experiments/run.h"

// What a user names: a config, a run.
namespace lrnn::cli {

// Where the configs are: beside an installed program, in the checkout around a build folder, or
// where the program was built.
std::string configs_folder();
// A config by the name the documents use: a file that is there, or one of those that came with the
// program (configs/tiny.yaml, quick/parity_delta_net_2.yaml), wherever one stands. What is neither
// is returned as it is.
std::string find_config(const std::string& name);

// A run by its folder; or by the name of its config, runs/plays, where there is one seed of it,
// runs/plays-seed42.
std::string find_run(const std::string& name);

// Opens a run or a checkpoint for a command. Checkpoints that are damaged and passed over are named
// on stderr; with --json the command repeats them as "damaged".
experiments::Run open_run(const std::string& name);
// The same for a run that somebody else has opened.
void warn_of_damage(const experiments::Run& run);

}  // namespace lrnn::cli
