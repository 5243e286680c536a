#include "training/precision.h"

#include <ATen/autocast_mode.h>

#include <cstdlib>

#include "training/tiles.h"

namespace lrnn::training {

Precision::Precision(const std::string& name)
    : on_(name == "bfloat16"), before_(at::autocast::is_autocast_enabled(at::kCPU)) {
  if (!on_) return;
  // oneDNN picks its bfloat16 kernels at first use and believes what the processor says of itself.
  static const bool tiles = tiles_work();
  if (!tiles) ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::increment_nesting();
}

Precision::~Precision() {
  if (!on_) return;
  // The cast copies of the weights must not outlive an update.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, before_);
}

}  // namespace lrnn::training
