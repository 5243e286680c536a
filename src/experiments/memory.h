#pragma once
#include "experiments/run.h"
#include "training/estimate.h"

namespace lrnn::experiments {

// What training this config would take; nothing large is taken to find out.
training::MemoryEstimate memory_of(const RunConfig& config, bool gpu = false);

}  // namespace lrnn::experiments
