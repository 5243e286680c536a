#include "training/config.h"

#include <cmath>
#include <numbers>

namespace lrnn::training {

void TrainConfig::check(const Section& at) const {
  at.require(accumulate <= batch, "accumulate", "must be at most the batch (", batch, "), got ",
             accumulate);
  at.require(betas.size() == 2, "betas", "must be two numbers, got ", betas.size());
}

double learning_rate(const TrainConfig& train, int64_t step) {
  if (step < train.warmup) return train.lr * double(step) / double(train.warmup);
  if (train.schedule == "constant") return train.lr;
  const double low = train.lr_floor * train.lr;
  if (step >= train.steps) return low;
  const double done = double(step - train.warmup) / double(train.steps - train.warmup);
  return low + 0.5 * (1 + std::cos(std::numbers::pi * done)) * (train.lr - low);
}

}  // namespace lrnn::training
