#pragma once
#include <cstdint>

#include "model/model.h"
#include "tasks/task.h"
#include "training/config.h"

namespace lrnn::training {

// How many threads an update of this size is quickest with, or what the config asks for.
int64_t choose_threads(const model::Model& model, const tasks::Task& task,
                       const TrainConfig& config);

// While it lives, LibTorch works with that many threads.
class Threads {
 public:
  explicit Threads(int64_t count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace lrnn::training
