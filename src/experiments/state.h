#pragma once
#include <cstdint>
#include <string>

namespace lrnn::experiments {

// What a run needs beside weights and moments to go on as if nothing had happened: state.json.
struct RunState {
  int64_t step = 0;     // updates made
  int64_t skipped = 0;  // batches passed over because of a loss or gradient that was not finite
  int64_t metrics_bytes = 0;  // size of metrics.jsonl at this moment
  // Since the last "train" line of metrics.jsonl:
  double loss_sum = 0;
  int64_t updates = 0, right = 0, targets = 0;
  // The best evaluation so far; -1: none yet.
  double best_accuracy = -1;
  int64_t best_step = -1;

  bool operator==(const RunState&) const = default;
};

std::string print(const RunState& state);
RunState read_state(const std::string& file);

}  // namespace lrnn::experiments
