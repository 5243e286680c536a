#include "experiments/start.h"

#include <filesystem>

#include "base/atomic_file.h"
#include "experiments/folder.h"
#include "experiments/state.h"
#include "model/checkpoint.h"
#include "training/trainer.h"

namespace lrnn::experiments {

void write_start(const std::string& folder, const RunConfig& config, model::Model& model,
                 const tasks::Task& task) {
  const Folder out(folder, config, false);
  out.checkpoints().save(0, [&](const std::string& to) {
    model::write_checkpoint(to + "/model.safetensors", {model::tensors_of(model), {}});
    // AdamW knows float32 only: other models can be run, not trained.
    if (config.model.dtype == "float32") {
      training::Trainer trainer(model, task, config.train, uint64_t(config.seed));
      model::write_checkpoint(to + "/optimizer.safetensors", {trainer.optimizer().state(), {}});
    }
    write_atomically(to + "/state.json", print(RunState{}));
    write_atomically(to + "/config.yaml", print_config(config));
  });
}

void start_from(const std::string& from, const std::string& folder, const RunConfig& config) {
  const auto run = open(from);
  const auto task = tasks::make(config.task);
  const auto model = build(config, *task);
  model::load_into(*model, model::tensors_of(*run.model), from);
  check(!std::filesystem::exists(folder + "/config.yaml"), folder, " already holds a run");
  write_start(folder, config, *model, *task);
}

}  // namespace lrnn::experiments
