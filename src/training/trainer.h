#pragma once
#include "model/model.h"
#include "tasks/task.h"
#include "training/adamw.h"
#include "training/batch.h"
#include "training/config.h"

namespace lrnn::training {

// What one batch did.
struct Update {
  double loss = 0, lr = 0, grad_norm = 0;  // the norm before clipping
  int64_t right = 0, targets = 0;
  bool skipped = false;  // loss or gradient was not finite: no weight, no moment changed
};

// Trains a model, one batch at a time. Batch i is the examples i*batch .. (i+1)*batch-1 of the
// task's training split, so the n-th update is a pure function of the weights and moments before
// it: nothing else has to be saved to go on later.
class Trainer {
 public:
  Trainer(model::Model& model, const tasks::Task& task, const TrainConfig& config, uint64_t seed);

  // Update number `step` (it sets the learning rate) from batch number `index`; the two part ways
  // when a batch was skipped. With nonfinite: stop, a loss or gradient that is not finite is an
  // Error naming step, layer and tensor.
  Update update(int64_t step, int64_t index);

  AdamW& optimizer() { return optimizer_; }

 private:
  std::vector<Batch> batches(int64_t index) const;
  void not_finite(int64_t step, const std::string& what, const std::string& where) const;

  model::Model& model_;
  const tasks::Task& task_;
  TrainConfig config_;
  uint64_t seed_;
  AdamW optimizer_;
};

}  // namespace lrnn::training
