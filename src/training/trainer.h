#pragma once
#include <memory>

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
  virtual ~Trainer() = default;

  // Update number `step` (it sets the learning rate) from batch number `index`; the two part ways
  // when a batch was skipped. With nonfinite: stop, a loss or gradient that is not finite is an
  // Error naming step, layer and tensor.
  virtual Update update(int64_t step, int64_t index);

  AdamW& optimizer() { return optimizer_; }

 protected:
  std::vector<tasks::Example> examples(int64_t index) const;  // of batch `index`
  // Where part `part` of a batch begins; the parts are as equal in size as can be.
  int64_t part_begin(int64_t part) const { return part * config_.batch / config_.accumulate; }
  [[noreturn]] void not_finite(int64_t step, const std::string& what,
                               const std::string& where) const;

  model::Model& model_;
  const tasks::Task& task_;
  TrainConfig config_;
  uint64_t seed_;
  AdamW optimizer_;

 private:
  std::vector<Batch> batches(int64_t index) const;
};

// For the device the model is on.
std::unique_ptr<Trainer> make_trainer(model::Model& model, const tasks::Task& task,
                                      const TrainConfig& config, uint64_t seed);

}  // namespace lrnn::training
