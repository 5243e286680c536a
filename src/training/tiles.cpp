#include "training/tiles.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lrnn::training {

bool tiles_work() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool announced = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 24));
  const bool described = __get_cpuid_count(0x1D, 0, &a, &b, &c, &d) && a > 0;  // palettes
  return announced && described;
#else
  return false;
#endif
}

}  // namespace lrnn::training
