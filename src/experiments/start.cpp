#include "experiments/start.h"

#include "base/atomic_file.h"
#include "experiments/folder.h"
#include "experiments/remove.h"
#include "experiments/state.h"
#include "model/checkpoint.h"
#include "training/trainer.h"

namespace lrnn::experiments {

void write_start(const std::string& folder, const RunConfig& config, model::Model& model,
                 const tasks::Task& task, bool overwrite) {
  const Folder out(folder, config, {.overwrite = overwrite});
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

Run start_from(const std::string& from, const std::string& folder, const RunConfig& config,
               bool overwrite) {
  auto run = open(from);
  const auto task = tasks::make(config.task);
  const auto model = build(config, *task);
  model::load_into(*model, model::tensors_of(*run.model), from);
  if (overwrite) check_removable(folder, from);
  write_start(folder, config, *model, *task, overwrite);
  return run;
}

}  // namespace lrnn::experiments
