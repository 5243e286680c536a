#include "experiments/run.h"

#include <filesystem>

#include "base/atomic_file.h"
#include "experiments/checkpoint_writer.h"
#include "experiments/compiled.h"
#include "experiments/folder.h"
#include "experiments/imported.h"
#include "model/checkpoint.h"
#include "training/trainer.h"

namespace lrnn::experiments {

RunConfig read_config(const std::string& file, const std::vector<std::string>& overrides) {
  auto section = Section::from_file(file);
  for (const auto& assignment : overrides) section.set(assignment);
  auto config = load<RunConfig>(section);
  resolve(config);  // reads the mixer's and the task's own keys: their mistakes show here
  return config;
}

YAML::Node resolve(const RunConfig& config) {
  auto node = save(config);
  node["task"] = tasks::find(config.task).resolve(config.task);
  node["model"]["mixer"] = mixers::resolve(config.model.mixer);
  if (config.model.hybrid.any())
    node["model"]["hybrid"]["mixer"] = mixers::resolve(config.model.hybrid.mixer);
  return node;
}

model::ModelPtr build(const RunConfig& config, const tasks::Task& task) {
  return std::make_shared<model::Model>(config.model, task.vocabulary(), uint64_t(config.seed));
}

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
                "give the folder that `lrnn train --out`, `compile -o` or `import -o` wrote");
  const Checkpoints checkpoints(folder + "/checkpoints");
  const int64_t step = checkpoints.newest(&damaged);
  if (step < 0)
    throw Error(cat("the run in ", folder, " has no checkpoint yet"),
                "let it reach one, or make them more often with train.checkpoint_every");
  return checkpoints.path(step);
}

}  // namespace

Run open(const std::string& folder) {
  if (model::is_published(folder)) return run_of(folder, model::import_model(folder));
  Run run;
  const auto from = find_checkpoint(folder, run.damaged);
  run.folder = folder;
  run.origin = origin_of(folder);
  run.config = read_config(from + "/config.yaml", {});
  run.task = tasks::make(run.config.task);
  run.model = model::Model::blank(run.config.model, run.task->vocabulary());
  run.step = read_state(from + "/state.json").step;
  const std::string weights = from + "/model.safetensors";
  model::load_into(*run.model, model::read_checkpoint(weights).tensors, weights);
  return run;
}

training::MemoryEstimate memory_of(const RunConfig& config, bool gpu) {
  const auto task = tasks::make(config.task);
  const auto model = model::Model::shapes(config.model, task->vocabulary());
  return training::estimate_memory(*model, *task, config.train, gpu);
}

void write_start(const std::string& folder, const RunConfig& config, model::Model& model,
                 const tasks::Task& task, bool overwrite, bool moments) {
  const Folder out(folder, config, {.overwrite = overwrite});
  CheckpointFiles files{.model = {}, .moments = {}, .state = {}, .config = print_config(config)};
  // AdamW knows float32 only: other models can be run, not trained.
  std::optional<training::Trainer> trainer;
  if (moments && config.model.dtype == "float32") {
    trainer.emplace(model, task, config.train, uint64_t(config.seed));
    files.moments = trainer->optimizer().state();
  }
  files.model = model::tensors_of(model);
  out.checkpoints().save(0, [&](const std::string& to) { return write_files(to, files); });
}

namespace {

std::string letters_of(const tasks::Task& task) {
  std::string out;
  for (const int64_t t : task.letters()) out += (out.empty() ? "" : " ") + task.word(t);
  return out;
}
std::string shown(const std::string& text) {
  return text.size() <= 60 ? text : text.substr(0, 60) + " …";
}

// A model knows tokens by their numbers: another task must have as many, and the same letters.
void check_tokens(const std::string& from, const tasks::Task& own, const tasks::Task& task) {
  const char* hint = "name a task with the same letters in the same order, and as many answers";
  const bool both = own.followed() && task.followed();
  const auto letters = both ? letters_of(own) : "", others = both ? letters_of(task) : "";
  if (letters != others)
    throw Error(
        cat(from, " reads ", shown(letters), ", and the task's letters are ", shown(others)), hint);
  if (own.vocabulary() != task.vocabulary())
    throw Error(
        cat(from, " knows ", own.vocabulary(), " tokens, and the task has ", task.vocabulary()),
        hint);
}

// Compiled models that a small step could break are not trained.
void check_margin(const std::string& from, const RunConfig& config) {
  const auto margin = compiled_margin(from);
  if (config.train.precision != "float32")
    throw Error(cat("a compiled model is right in float32 only, not in ", config.train.precision),
                "leave train.precision at float32");
  if (margin.weight == 0)
    throw Error(cat("no margin could be shown for ", margin.limit, " of ", from,
                    ", so the smallest step may break it"),
                "compile it with --profile native, which has one, or train a model from the start");
}

}  // namespace

Run start_from(const std::string& from, const std::string& folder, const RunConfig& config,
               bool overwrite) {
  auto run = open(from);
  const auto task = tasks::make(config.task);
  check_tokens(from, *run.task, *task);
  if (config.model.dtype != "float32")
    throw Error(
        cat("AdamW trains float32 weights, and those of ", from, " are ", config.model.dtype),
        "compile the model in another profile than fp64");
  if (is_compiled(from) && run.step == 0) check_margin(from, config);
  const auto model = build(config, *task);
  model::load_into(*model, model::tensors_of(*run.model), from);
  if (overwrite) check_removable(folder, from);
  write_start(folder, config, *model, *task, overwrite);
  return run;
}

}  // namespace lrnn::experiments
