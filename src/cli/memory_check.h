#pragma once
#include "cli/output.h"
#include "experiments/memory.h"

namespace lrnn::cli {

Json to_json(const training::MemoryEstimate& estimate);
// "about 6.6 GB: weights 2 MB, …"
std::string memory_text(const training::MemoryEstimate& estimate);

// Refuses what does not fit into the free memory of the device, before any of it is taken.
void require_memory(const experiments::RunConfig& config, const std::string& device, bool force);

}  // namespace lrnn::cli
