#include "kernels/dispatch.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/error.h"

namespace lrnn::kernels {
namespace {

// Exactly what CMakeLists.txt lets the compiler use for each.
Isa detect() {
#if defined(__x86_64__)
  const bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return Isa::kAvx512;
  if (fma && __builtin_cpu_supports("avx2") && has_f16c()) return Isa::kAvx2;
#endif
  return Isa::kBaseline;
}

// Inside a function: kernels may run while other files are still being initialised.
Isa detected() {
  static const Isa isa = detect();
  return isa;
}

Isa& chosen() {
  static Isa isa = detected();
  return isa;
}

}  // namespace

// Clang has no name for it in __builtin_cpu_supports.
bool has_f16c() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
#else
  return false;
#endif
}

Isa best_isa() { return chosen(); }
bool has_isa(Isa isa) { return isa <= detected(); }
void force_isa(Isa isa) {
  check(has_isa(isa), "This machine cannot run the ", name(isa), " kernels.");
  chosen() = isa;
}

const char* name(Isa isa) {
  return isa == Isa::kAvx512 ? "avx512" : isa == Isa::kAvx2 ? "avx2" : "baseline";
}

}  // namespace lrnn::kernels
