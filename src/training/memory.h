#pragma once
#include <cstddef>

namespace lrnn::training {

// From here on, the CPU tensors of this process live in blocks that are kept when a tensor dies and
// given to the next of about its size. A training step makes the tensors of the step before: fresh
// pages for each of them would cost a third of its time. For programs, before they make tensors;
// a library must not decide this for its host. Calling it twice is calling it once.
void reuse_memory();

// Bytes, with the rounding up.
struct MemoryUse {
  size_t live = 0;    // in tensors
  size_t peak = 0;    // the most there ever was in tensors
  size_t cached = 0;  // kept for the next ones; live + cached <= 1.5 peak + 64 MB
};
MemoryUse memory_use();

// Gives back to the system what no tensor uses.
void release_memory();

}  // namespace lrnn::training
