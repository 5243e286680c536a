#pragma once
#include <cstdint>
#include <string>

namespace lrnn {

// Bytes that this process can still take: what the machine has left without swapping, or less where
// a control group (a container, a batch job) allows less. The largest number of all where the
// system does not say. `root` is what stands before /proc and /sys, for tests.
int64_t free_memory(const std::string& root = "");

}  // namespace lrnn
