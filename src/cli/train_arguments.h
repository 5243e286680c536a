#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::cli {

struct TrainArguments {
  std::string config = {}, out = {}, from = {};
  std::vector<std::string> overrides = {};
  int64_t seeds = 0, jobs = 1;  // seeds 0: one run
  bool resume = false, overwrite = false, tensorboard = false, quiet = false, json = false,
       force = false;

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

}  // namespace lrnn::cli
