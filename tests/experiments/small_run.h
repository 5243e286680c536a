#pragma once
#include "experiments/run.h"
#include "tests/experiments/folder.h"

// A run of thirteen steps for tests of what runs leave behind.
namespace lrnn::experiments {

inline RunConfig small(std::vector<std::string> overrides = {}) {
  // None of these divides another, so every kind of moment comes up.
  for (const char* own : {"train.steps=13", "train.log_every=5", "train.eval_every=4",
                          "train.checkpoint_every=3", "train.keep=2"})
    overrides.insert(overrides.begin(), own);
  return read_config(std::string(LRNN_SOURCE_DIR) + "/configs/tiny.yaml", overrides);
}

inline TrainOptions into(const std::string& out, bool resume = false) {
  TrainOptions options;
  options.out = out;
  options.resume = resume;
  return options;
}

struct Killed {};

// Stops after n steps as a power cut would: without a word.
inline void kill_after(int64_t n, const RunConfig& config, TrainOptions options) {
  int64_t calls = 0;
  options.interrupted = [&] {
    if (++calls == n) throw Killed();
    return false;
  };
  EXPECT_THROW(train(config, options), Killed);
}

// What a run leaves behind that must not depend on how it got there.
inline std::map<std::string, std::string> bytes_of(const std::string& run) {
  std::map<std::string, std::string> out;
  out["metrics"] = read_file(run + "/metrics.jsonl");
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"})
    out[name] = read_file(run + "/checkpoints/step-00000013/" + name);
  return out;
}

}  // namespace lrnn::experiments
