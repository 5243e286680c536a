#include "experiments/memory.h"

namespace lrnn::experiments {

training::MemoryEstimate memory_of(const RunConfig& config, bool gpu) {
  const auto task = tasks::make(config.task);
  const auto model = model::Model::shapes(config.model, task->vocabulary());
  return training::estimate_memory(*model, *task, config.train, gpu);
}

}  // namespace lrnn::experiments
