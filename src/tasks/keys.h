#pragma once
#include "tasks/task.h"

// The config keys every task has, and the registry entry made of a task's config.
namespace lrnn::tasks {

// Longer sequences are typing errors, and would not fit into memory with a batch of them.
constexpr int64_t kLongest = 100'000'000;

// Of a range of lengths.
inline Limits lengths(int64_t shortest) { return at_least(double(shortest)).at_most(kLongest); }

// The defaults are part of the type because reading a config starts from a fresh value of it.
template <int64_t lo, int64_t hi, int64_t shortest = 1> struct TrainKeys {
  Range length = {lo, hi};
  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, "shortest and longest training sequence", lengths(shortest));
  }
};

template <int64_t lo, int64_t hi, int64_t count, int64_t shortest = 1> struct EvalKeys {
  Range length = {lo, hi};
  int64_t samples = count;
  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, "shortest and longest sequence it is tested on", lengths(shortest));
    visit("samples", samples, "sequences in one evaluation", at_least(1));
  }
};

// A task's config has train, eval and make(), which returns the task without its lengths.
template <class Config> Entry entry(const char* name, const char* about) {
  const auto make = [](const Section& at) -> TaskPtr {
    const auto config = load<Config>(at, {"name"});
    auto task = config.make();
    task->train_length = config.train.length;
    task->eval_length = config.eval.length;
    task->eval_samples = config.eval.samples;
    return task;
  };
  const auto resolve = [](const Section& at) {
    YAML::Node node(YAML::NodeType::Map);
    if (at.has("name")) node["name"] = at.node()["name"].Scalar();
    for (const auto& item : save(load<Config>(at, {"name"}))) node[item.first] = item.second;
    return node;
  };
  return {name, about, make, resolve, [] { return keys<Config>(); }};
}

}  // namespace lrnn::tasks
