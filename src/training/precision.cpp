#include "training/precision.h"

#include <ATen/autocast_mode.h>

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lrnn::training {
namespace {

// Whether oneDNN can use the processor's matrix tiles (AMX). Some virtual machines announce tiles
// but hide how large they are; oneDNN then leaves them unconfigured and the program dies of an
// illegal instruction at the first bfloat16 product.
#if defined(__x86_64__)
bool tiles_work() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool announced = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 24));
  const bool described = __get_cpuid_count(0x1D, 0, &a, &b, &c, &d) && a > 0;  // palettes
  return announced && described;
}

// oneDNN decides once, before any product, which instructions it uses: so does this.
[[maybe_unused]] const int kept_off_tiles =
    tiles_work() ? 0 : ::setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", 0);
#endif

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
