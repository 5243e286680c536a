#include "training/precision.h"

#include <ATen/autocast_mode.h>

#include <cstdlib>

#include "training/tiles.h"

namespace lrnn::training {
namespace {

// oneDNN decides once, before any product, which instructions it uses: so does this.
[[maybe_unused]] const int kept_off_tiles =
    tiles_work() ? 0 : ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);

}  // namespace

Precision::Precision(const std::string& name, c10::DeviceType device)
    : device_(device), on_(name == "bfloat16"), before_(at::autocast::is_autocast_enabled(device)) {
  if (!on_) return;
  at::autocast::set_autocast_dtype(device, at::kBFloat16);
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::increment_nesting();
}

Precision::~Precision() {
  if (!on_) return;
  // The cast copies of the weights must not outlive an update.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, before_);
}

}  // namespace lrnn::training
