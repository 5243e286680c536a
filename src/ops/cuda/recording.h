#pragma once
#include <functional>
#include <memory>

#include "ops/gpu.h"

namespace lrnn::ops::cuda {

// Gpu::record.
std::unique_ptr<Recording> record(const std::function<void()>& work, const Recording* beside);

}  // namespace lrnn::ops::cuda
