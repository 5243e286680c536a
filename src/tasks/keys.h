#pragma once
#include "base/random.h"
#include "tasks/task.h"

// What the files of the tasks share: the config keys every task has, the registry entry made of a
// task's config, and which random numbers belong to what.
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

// Training that asks for the answer at the end, or on the way too, which is easier. Help has the
// task's own words for both.
template <class Help, int64_t shortest> struct AskedKeys {
  Range length = {3, 40};
  std::string targets = "last";
  bool on_the_way() const { return targets == "all"; }

  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, Help::kLength, lengths(shortest));
    visit("targets", targets, Help::kTargets, {"last", "all"});
  }
};

// The last two fields of a task's config.
template <class Visit, class Train, class Eval>
void visit_both(Visit&& visit, Train& train, Eval& eval,
                const char* trained_on = "what it is trained on") {
  visit("train", train, trained_on);
  visit("eval", eval, "what it is tested on");
}

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

// Far apart, so that a stream plus a small number is never another stream.
enum Stream : uint64_t {
  kTrainStream = 0x1'0000'0000'0000,
  kEvalStream = 0x2'0000'0000'0000,
  kSetStream = 0x3'0000'0000'0000,     // the members of a fixed set
  kEpochStream = 0x4'0000'0000'0000,   // their order in each epoch
  kRowStream = 0x5'0000'0000'0000,     // which rows of a file are for training
  kWindowStream = 0x6'0000'0000'0000,  // the order of a text's windows in each epoch
  kMixStream = 0x7'0000'0000'0000,     // which of several texts comes when
};

inline Random stream(uint64_t seed, Split split, uint64_t index) {
  return {seed, split == Split::kTrain ? kTrainStream : kEvalStream, index};
}

inline void expect_length(Range length, int64_t shortest) {
  if (shortest <= length.lo && length.lo <= length.hi && length.hi <= kLongest) [[likely]]
    return;
  throw Error(cat("the length of a sequence ", lengths(shortest).problem(length)));
}

}  // namespace lrnn::tasks
