#include "kernels/isa.h"

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
  if (fma && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return Isa::kAvx2;
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
