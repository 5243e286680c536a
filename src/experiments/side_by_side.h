#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/run.h"

namespace lrnn::experiments {

struct Job {
  std::string name, out;
  RunConfig config;
};

// Trains every job, `at_once` at a time, each in a process of its own: LibTorch's generator and
// thread pool belong to a process, and small models train quickest on one thread each. Call it
// before this process has computed anything with LibTorch, whose threads do not survive a fork.
//
// False when it was interrupted. A job that fails ends the others and becomes an Error.
bool train_side_by_side(const std::vector<Job>& jobs, size_t at_once,
                        const std::function<void(const std::vector<Progress>&)>& progress,
                        const std::function<bool()>& interrupted);

}  // namespace lrnn::experiments
