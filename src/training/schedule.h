#pragma once
#include "training/config.h"

namespace lrnn::training {

// The learning rate of update `step`, counted from 0. It rises linearly from 0 over `warmup`
// updates (so the very first one moves only the moments), then stays, or follows a cosine down to
// lr_floor lr at `steps` and rests there.
double learning_rate(const TrainConfig& train, int64_t step);

}  // namespace lrnn::training
