#pragma once
#include "model/model.h"
#include "tasks/task.h"
#include "training/config.h"

namespace lrnn::training {

// The memory that training takes, in bytes, known before any of it is taken. It is an estimate: of
// the published configs that were tried none took less than half or more than twice as much
// (docs/design.md).
struct MemoryEstimate {
  double weights = 0, gradients = 0;
  double optimizer = 0;   // AdamW's two averages, and their copy while a checkpoint is written
  double batch = 0;       // what forward leaves for backward, and the gradients on the way
  double evaluation = 0;  // of one forward; never at the same time as a batch
  double spare = 0;       // freed, and kept for the next tensors of that size
  double program = 0;     // LibTorch, or CUDA's own

  double total() const {
    return weights + gradients + optimizer + std::max(batch, evaluation) + spare + program;
  }
};

// `model` may be one without memory (Model::shapes).
MemoryEstimate estimate_memory(const model::Model& model, const tasks::Task& task,
                               const TrainConfig& config, bool gpu = false);

}  // namespace lrnn::training
