#include "ops/gpu.h"

namespace lrnn::ops {
namespace {

Gpu* loaded = nullptr;

}  // namespace

Gpu* gpu() { return loaded; }
void set_gpu(Gpu* gpu) { loaded = gpu; }

}  // namespace lrnn::ops
