#pragma once
#include <future>
#include <map>
#include <string>

#include "experiments/checkpoints.h"
#include "ops/torch.h"

namespace lrnn::experiments {

// The files of one checkpoint.
struct CheckpointFiles {
  using Tensors = std::map<std::string, torch::Tensor>;
  Tensors model, moments;  // no moments: no file of them
  RunState state;
  std::string config;
};
// With std::launch::async the two large files are written side by side.
Checkpoints::Sums write_files(const std::string& folder, const CheckpointFiles& files,
                              std::launch how = std::launch::deferred);

// Writes the checkpoints of a run while its training goes on. Whoever saves waits for the
// checkpoint before, if it is still being written, and for a copy of the tensors in host memory; a
// thread does the rest. Small ones are written at once: that takes less than a copy is worth.
class CheckpointWriter {
 public:
  CheckpointWriter(const Checkpoints& checkpoints, int64_t keep)
      : checkpoints_(checkpoints), keep_(keep) {}

  void save(const CheckpointFiles& files);
  // The Error of a checkpoint that could not be written, once.
  void check();
  void wait();  // until all is written, or an Error

  static constexpr int64_t kAtOnce = 4 << 20;  // bytes

 private:
  bool copy(const CheckpointFiles& files, int64_t bytes, bool gpu);
  void write(const CheckpointFiles& files, std::launch how) const;

  const Checkpoints& checkpoints_;
  int64_t keep_;
  torch::Tensor room_;    // for the copies; on a GPU's account it is memory that copies reach fast
  CheckpointFiles copy_;  // its tensors are views of room_
  std::future<void> writing_;  // the last member: it ends before what it reads
};

}  // namespace lrnn::experiments
