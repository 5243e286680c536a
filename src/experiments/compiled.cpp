#include "experiments/compiled.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "experiments/start.h"
#include "tasks/automaton.h"

namespace lrnn::experiments {
namespace {

using Json = nlohmann::ordered_json;

std::string compiled_file(const std::string& folder) { return folder + "/compiled.json"; }

template <class T> Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

void write_compiled(const std::string& folder, const compile::Compiled& c,
                    const automata::Source& source) {
  RunConfig config;
  config.task =
      Section::from_text(tasks::automaton_config(source, c.subject, c.weights.bos), "task");
  config.model = c.weights.config;
  config.train.lr = 1e-4;
  // Weights as large as these are no accident: decay would forget them.
  config.train.weight_decay = 0;
  const auto task = tasks::make(config.task);
  check(task->vocabulary() == c.weights.vocabulary, "the task has ", task->vocabulary(),
        " tokens, the model ", c.weights.vocabulary);
  const auto model = compile::model_of(c.weights);
  if (std::filesystem::exists(folder + "/config.yaml"))
    throw Error(cat(folder, " already holds a run"), "choose another folder with -o");
  write_start(folder, config, *model, *task);
  const auto& limits = c.options.limits;
  const Json about{{"title", c.subject.title},
                   {"recogniser", c.subject.recogniser},
                   {"kind", automata::name_of(c.plan.kind)},
                   {"summary", c.plan.summary},
                   {"profile", compile::name_of(c.options.profile)},
                   {"gate", c.options.gate},
                   {"limits",
                    {{"householders", or_null(limits.householders)},
                     {"layers", or_null(limits.layers)},
                     {"negative", limits.negative},
                     {"drift", limits.drift}}},
                   {"exactness", std::isfinite(c.t_safe) ? "drift" : "exact"},
                   {"t_safe", c.t_safe}};
  write_atomically(compiled_file(folder), about.dump(2) + "\n");
}

bool is_compiled(const std::string& folder) {
  return std::filesystem::exists(compiled_file(folder));
}

std::unique_ptr<compile::Compiled> recompile(const Run& run) {
  compile::Options options;
  const std::string file = compiled_file(run.folder);
  try {
    const auto about = Json::parse(read_file(file));
    const auto& limits = about.at("limits");
    if (!limits.at("householders").is_null())
      options.limits.householders = limits.at("householders").get<int64_t>();
    if (!limits.at("layers").is_null()) options.limits.layers = limits.at("layers").get<int64_t>();
    options.limits.negative = limits.at("negative").get<bool>();
    options.limits.drift = limits.at("drift").get<bool>();
    options.profile = compile::profile_named(about.at("profile").get<std::string>());
    options.gate = about.at("gate").get<bool>();
  } catch (const Json::exception& e) {
    throw Error(cat(file, " is not what `lrnn compile` writes: ", e.what()));
  }
  return compile::compile(tasks::subject_of(run.config.task), options);
}

}  // namespace lrnn::experiments
