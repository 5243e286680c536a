#include "experiments/compiled.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "experiments/folder.h"
#include "experiments/state.h"
#include "model/checkpoint.h"
#include "tasks/automaton.h"
#include "training/trainer.h"

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
  const Folder out(folder, config, false);
  out.checkpoints().save(0, [&](const std::string& to) {
    model::write_checkpoint(to + "/model.safetensors", {model::tensors_of(*model), {}});
    // AdamW knows float32 only: other models can be run, not trained.
    if (config.model.dtype == "float32") {
      training::Trainer trainer(*model, *task, config.train, uint64_t(config.seed));
      model::write_checkpoint(to + "/optimizer.safetensors", {trainer.optimizer().state(), {}});
    }
    write_atomically(to + "/state.json", print(RunState{}));
    write_atomically(to + "/config.yaml", print_config(config));
  });
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

compile::Tokens tokens_of(const tasks::Task& task, const automata::Subject& subject) {
  const auto& a = subject.automaton;
  std::map<std::string, int64_t> letters, words;
  for (int64_t t = 0; t < task.vocabulary(); ++t) {
    words.emplace(task.word(t), t);
    if (t < task.read_tokens()) letters.emplace(task.word(t), t);
  }
  // A model of the task itself may use one word for a letter and a state.
  for (int64_t t = task.read_tokens(); t < task.vocabulary(); ++t) words[task.word(t)] = t;
  const auto token = [](const auto& known, const std::string& name, const char* what) {
    const auto at = known.find(name);
    if (at == known.end())
      throw Error(cat("the model has no token for the ", what, " '", name, "'"),
                  "the automaton must use the words that `lrnn tasks show` prints");
    return at->second;
  };
  compile::Tokens out;
  out.before = task.before_word();
  for (int64_t x = 0; x < a.symbols; ++x)
    out.symbol.push_back(token(letters, a.symbol_name(x), "symbol"));
  for (int64_t s = 0; s < a.states; ++s)
    out.answer.push_back(token(
        words, subject.recogniser ? (a.accept[size_t(s)] ? "accept" : "reject") : a.state_name(s),
        "answer"));
  return out;
}

}  // namespace lrnn::experiments
