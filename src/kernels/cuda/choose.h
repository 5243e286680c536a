#pragma once
#include <string_view>

#include "kernels/cuda/chunk.h"
#include "kernels/cuda/delta_product.h"

// Which kernel when: the one place that decides.
namespace lrnn::kernels::cuda {

enum class Method : uint8_t { kExact, kSmall, kAccurate, kFast };

// `precision` as in ops/delta_product.h: the least that will do.
inline Method choose(const DeltaProductInputs& p, std::string_view precision) {
  const Method exact = small_fits(p) ? Method::kSmall : Method::kExact;
  if (!chunk_fits(p) || precision == "exact") return exact;
  const bool fast = precision.empty() ? p.log_gate != nullptr : precision == "fast";
  // A chunk costs the same however few micro-steps it holds.
  const int64_t steps = p.S > 0 ? (p.cu_seqlens ? p.T / p.S : p.T) * p.N : 0;
  if (steps <= (p.K <= 64 && p.V <= 64 ? 64 : 32)) return exact;
  // With a warp for every scheduler of the chip small heads are no slower than chunks; with fewer
  // they are more accurate, at up to a third of a millisecond for this many micro-steps.
  if (exact == Method::kSmall && (p.S * p.H >= 512 || (!fast && steps <= 1024))) return exact;
  return fast ? Method::kFast : Method::kAccurate;
}

}  // namespace lrnn::kernels::cuda
