#pragma once
#include <functional>
#include <memory>

#include "ops/gpu.h"

// What the plug-in's Gpu is made of.
namespace lrnn::ops::cuda {

// Gpu::record.
std::unique_ptr<Recording> record(const std::function<void()>& work, const Recording* beside);

// While the result lives, this thread's work goes to a stream that no other thread has. LibTorch's
// own pool gives the 33rd who asks the stream of the first: what one of them launches while the
// other records would become part of the recording.
std::shared_ptr<void> own_stream();

}  // namespace lrnn::ops::cuda
