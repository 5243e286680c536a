#include "training/config.h"

namespace lrnn::training {

void TrainConfig::check(const Section& at) const {
  const auto at_least = [&](const char* key, int64_t value, int64_t least) {
    at.require(value >= least, key, "must be at least ", least, ", got ", value);
  };
  at_least("steps", steps, 1);
  at_least("batch", batch, 1);
  at_least("accumulate", accumulate, 1);
  at.require(accumulate <= batch, "accumulate", "must be at most the batch (", batch, "), got ",
             accumulate);
  at_least("warmup", warmup, 0);
  at_least("eval_every", eval_every, 0);
  at_least("checkpoint_every", checkpoint_every, 0);
  at_least("log_every", log_every, 1);
  at_least("keep", keep, 1);
  at_least("threads", threads, 0);
  at.require(lr > 0, "lr", "must be above 0, got ", lr);
  at.require(lr_floor >= 0 && lr_floor <= 1, "lr_floor", "must be between 0 and 1, got ", lr_floor);
  at.require(weight_decay >= 0, "weight_decay", "must be at least 0, got ", weight_decay);
  at.require(clip >= 0, "clip", "must be at least 0, got ", clip);
  at.require(stop_at >= 0 && stop_at <= 1, "stop_at", "must be between 0 and 1, got ", stop_at);
  at.require(eps > 0, "eps", "must be above 0, got ", eps);
  at.require(betas.size() == 2, "betas", "must be two numbers, got ", betas.size());
  for (double beta : betas)
    at.require(beta >= 0 && beta < 1, "betas", "must lie in [0, 1), got ", beta);
}

}  // namespace lrnn::training
