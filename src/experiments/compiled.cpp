#include "experiments/compiled.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "experiments/run.h"
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
                    const compile::Margin& margin, const automata::Source& source) {
  RunConfig config;
  config.task =
      Section::from_text(tasks::automaton_config(source, c.subject, c.weights.bos), "task");
  config.model = c.weights.config;
  // One setting for all of them. AdamW moves a weight by about lr per step: in a hundred steps,
  // over which the rate falls, by less than the usual margin, and in a thousand by several times
  // that, which is enough to learn other answers. Decay would forget what is stored in large
  // weights.
  config.train.steps = 1000, config.train.batch = 32;
  config.train.lr = 5e-4, config.train.warmup = 0, config.train.weight_decay = 0;
  const auto task = tasks::make(config.task);
  check(task->vocabulary() == c.weights.vocabulary, "the task has ", task->vocabulary(),
        " tokens, the model ", c.weights.vocabulary);
  const auto model = compile::model_of(c.weights);
  if (std::filesystem::exists(folder + "/config.yaml"))
    throw Error(cat(folder, " already holds a run"), "choose another folder with -o");
  write_start(folder, config, *model, *task);
  const auto& limits = c.options.limits;
  const Json about{
      {"title", c.subject.title},
      {"recogniser", c.subject.recogniser},
      {"kind", compile::name_of(c.plan.kind)},
      {"summary", c.plan.summary},
      {"profile", compile::name_of(c.options.profile)},
      {"gate", c.options.gate},
      {"limits",
       {{"householders", or_null(limits.householders)},
        {"layers", or_null(limits.layers)},
        {"negative", limits.negative},
        {"drift", limits.drift}}},
      {"exactness", std::isfinite(c.t_safe) ? "drift" : "exact"},
      {"t_safe", c.t_safe},
      {"margin", {{"weight", margin.weight}, {"length", margin.length}, {"limit", margin.limit}}}};
  write_atomically(compiled_file(folder), about.dump(2) + "\n");
}

bool is_compiled(const std::string& folder) {
  return std::filesystem::exists(compiled_file(folder));
}

namespace {

Json read_compiled(const std::string& folder) {
  const std::string file = compiled_file(folder);
  try {
    auto about = Json::parse(read_file(file));
    if (about.contains("margin")) return about;
  } catch (const Json::exception& e) {
    throw Error(cat(file, " is not what `lrnn compile` writes: ", e.what()));
  }
  throw Error(cat(folder, " was compiled by an earlier lrnn, whose weights had no margin"),
              "compile it again; `lrnn run` and `lrnn eval` open it as it is");
}

}  // namespace

std::unique_ptr<compile::Compiled> recompile(const Run& run) {
  compile::Options options;
  const auto about = read_compiled(run.folder);
  try {
    const auto& limits = about.at("limits");
    if (!limits.at("householders").is_null())
      options.limits.householders = limits.at("householders").get<int64_t>();
    if (!limits.at("layers").is_null()) options.limits.layers = limits.at("layers").get<int64_t>();
    options.limits.negative = limits.at("negative").get<bool>();
    options.limits.drift = limits.at("drift").get<bool>();
    options.profile = compile::profile_named(about.at("profile").get<std::string>());
    options.gate = about.at("gate").get<bool>();
  } catch (const Json::exception& e) {
    throw Error(cat(compiled_file(run.folder), " is not what `lrnn compile` writes: ", e.what()));
  }
  return compile::compile(tasks::subject_of(run.config.task), options);
}

compile::Margin compiled_margin(const std::string& folder) {
  const auto about = read_compiled(folder);
  try {
    const auto& margin = about.at("margin");
    return {margin.at("weight").get<double>(), margin.at("length").get<int64_t>(),
            margin.at("limit").get<std::string>()};
  } catch (const Json::exception& e) {
    throw Error(cat(compiled_file(folder), " is not what `lrnn compile` writes: ", e.what()));
  }
}

}  // namespace lrnn::experiments
