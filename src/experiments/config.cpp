#include "experiments/run.h"

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
  if (config.model.hybrid.every > 0)
    node["model"]["hybrid"]["mixer"] = mixers::resolve(config.model.hybrid.mixer);
  return node;
}

model::ModelPtr build(const RunConfig& config, const tasks::Task& task) {
  return std::make_shared<model::Model>(config.model, task.vocabulary(), uint64_t(config.seed));
}

}  // namespace lrnn::experiments
