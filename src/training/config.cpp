#include "training/config.h"

namespace lrnn::training {

void TrainConfig::check(const Section& at) const {
  at.require(accumulate <= batch, "accumulate", "must be at most the batch (", batch, "), got ",
             accumulate);
  at.require(betas.size() == 2, "betas", "must be two numbers, got ", betas.size());
}

}  // namespace lrnn::training
