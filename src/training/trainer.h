#pragma once
#include <memory>

#include "model/model.h"
#include "tasks/task.h"
#include "training/adamw.h"
#include "training/config.h"
#include "training/execution.h"
#include "training/growth.h"
#include "training/ranks.h"

namespace lrnn::training {

// Trains a model on the device it is on, one batch at a time. Batch i is the examples i*batch ..
// (i+1)*batch-1 of the task's training split, so the n-th update is a pure function of the weights
// and moments before it, and of how far words have grown: nothing else has to be saved to go on
// later.
class Trainer {
 public:
  // With `record` false nothing is recorded on a GPU: the same bits, for tests.
  // Several ranks work on the parts of every batch together.
  Trainer(model::Model& model, const tasks::Task& task, const TrainConfig& config, uint64_t seed,
          bool record = true, const Ranks& ranks = {});
  Trainer(const Trainer&) = delete;  // its execution knows where the optimiser is

  // Update number `step` (it sets the learning rate) from batch number `index`; the two part ways
  // when a batch was skipped. With nonfinite: stop, a loss or gradient that is not finite is an
  // Error naming step, layer and tensor.
  Update update(int64_t step, int64_t index);

  AdamW& optimizer() { return optimizer_; }
  int64_t kernels() const { return execution_->kernels(); }
  int64_t recordings() const { return execution_->recordings(); }
  // What it becomes by updates, and from where to go on.
  const Growth& growth() const { return growth_; }
  void go_on(const Growth& growth) { growth_ = growth, next_ = {}; }

 private:
  // Of batch `index`, of at most `longest` letters.
  std::vector<tasks::Example> examples(int64_t index, int64_t longest) const;
  Parts make(int64_t index, int64_t longest) const;
  Range words() const;  // the least and most letters that words of training can have
  [[noreturn]] void stop(int64_t step, const std::vector<Batch>& parts, const Update& update);

  model::Model& model_;
  const tasks::Task& task_;
  TrainConfig config_;
  uint64_t seed_;
  Ranks ranks_;
  AdamW optimizer_;
  Growth growth_;
  std::unique_ptr<Execution> execution_;
  Parts next_;  // made while the GPU was busy with the one before
};

// Where numbers first stop being finite on the way from the tokens to the loss of this batch: a
// weight, the output of a block, or the loss itself.
std::string find_in_forward(model::Model& model, const Batch& batch, const std::string& precision);

// The weight nearest to the loss whose gradient is not finite; the ones before it only inherit it.
std::string find_in_gradients(const model::Model& model);

}  // namespace lrnn::training
