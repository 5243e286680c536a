#include <filesystem>

#include "experiments/checkpoints.h"
#include "experiments/run.h"
#include "experiments/state.h"
#include "model/checkpoint.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;

namespace {

// The checkpoint that `folder` is, or the newest whole one of the run that it is.
std::string find_checkpoint(const std::string& folder, std::vector<std::string>& damaged) {
  if (fs::exists(folder + "/manifest.json") || fs::exists(folder + "/model.safetensors")) {
    const auto damage = Checkpoints::damage(folder);
    check(damage.empty(), damage);
    return folder;
  }
  if (!fs::exists(folder + "/config.yaml"))
    throw Error(cat(folder, " is neither a run nor a checkpoint"),
                "give the folder that `lrnn train --out` or `lrnn compile -o` wrote");
  const Checkpoints checkpoints(folder + "/checkpoints");
  const int64_t step = checkpoints.newest(&damaged);
  if (step < 0)
    throw Error(cat("the run in ", folder, " has no checkpoint yet"),
                "let it reach one, or make them more often with train.checkpoint_every");
  return checkpoints.path(step);
}

}  // namespace

Run open(const std::string& folder) {
  Run run;
  const auto from = find_checkpoint(folder, run.damaged);
  run.folder = folder;
  run.config = read_config(from + "/config.yaml", {});
  run.task = tasks::make(run.config.task);
  run.model = build(run.config, *run.task);
  run.step = read_state(from + "/state.json").step;
  const std::string weights = from + "/model.safetensors";
  model::load_into(*run.model, model::read_checkpoint(weights).tensors, weights);
  return run;
}

}  // namespace lrnn::experiments
