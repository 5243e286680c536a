#pragma once
#include <cstdint>

// The instruction sets the kernels are built for, and the one that every kernel uses.
namespace lrnn::kernels {

enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr Isa kIsas[] = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512};

// The best of this machine, unless one was forced (by a test).
Isa best_isa();
bool has_isa(Isa isa);
void force_isa(Isa isa);
const char* name(Isa isa);
bool has_f16c();

}  // namespace lrnn::kernels
