#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "experiments/run.h"

namespace lrnn::cli {

struct TrainArguments {
  std::string config = {}, out = {}, from = {}, group = {};
  std::vector<std::string> overrides = {};
  int64_t seeds = 0, jobs = 1;  // seeds 0: one run
  bool resume = false, overwrite = false, tensorboard = false, quiet = false, json = false,
       force = false, verify = false;

  // Whether train.steps or train.stop_at was named: only then may a run end elsewhere than it was
  // going to.
  bool extend() const;
};

// Finds the config: the one named, that of the run to go on with, or that of the run to begin from.
// What contradicts itself is an Error.
TrainArguments settle(TrainArguments arguments);

// runs/CONFIG-seed42, or runs/RUN-tuned-seed42 for --from RUN.
std::string default_folder(const TrainArguments& arguments, int64_t seed);

// A word as a shell reads it back.
std::string shell_word(const std::string& word);

// Trains the config with several seeds, a run folder for each, and sums them up. The result is the
// exit code.
int train_seeds(const TrainArguments& arguments, const std::string& device);

Json to_json(const training::MemoryEstimate& estimate);
// "about 6.6 GB: weights 2 MB, …"
std::string memory_text(const training::MemoryEstimate& estimate);

// Refuses what does not fit into the free memory of the device, before any of it is taken.
void require_memory(const experiments::RunConfig& config, const std::string& device, bool force);

}  // namespace lrnn::cli
