#pragma once
#include <string_view>

#include "kernels/cuda/chunk.h"

// Which kernel when: the one place that decides.
namespace lrnn::kernels::cuda {

enum class Method : uint8_t { kExact, kAccurate, kFast };

// `precision` as in ops/delta_product.h: the least that will do.
inline Method choose(const DeltaProductInputs& p, std::string_view precision) {
  if (!chunk_fits(p) || precision == "exact") return Method::kExact;
  // A chunk costs the same however few micro-steps it holds.
  const int64_t steps = p.S > 0 ? (p.cu_seqlens ? p.T / p.S : p.T) * p.N : 0;
  if (steps <= (p.K <= 64 && p.V <= 64 ? 64 : 32)) return Method::kExact;
  if (precision.empty()) return p.log_gate ? Method::kFast : Method::kAccurate;
  return precision == "fast" ? Method::kFast : Method::kAccurate;
}

}  // namespace lrnn::kernels::cuda
