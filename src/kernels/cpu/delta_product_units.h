#pragma once
#include "kernels/cpu/units.h"
#include "kernels/delta_product.h"

// Between the dispatcher and the files built per instruction set, each of which offers one function
// per type and direction.
namespace lrnn::kernels {

struct DeltaProductUnits {
  void (*forward[3])(const DeltaProductForward&, const Unit&);    // by Type
  void (*backward[3])(const DeltaProductBackward&, const Unit&);  // by Type
};
extern const DeltaProductUnits kDeltaProductBaseline;
extern const DeltaProductUnits kDeltaProductAvx2;
extern const DeltaProductUnits kDeltaProductAvx512;

// Tokens per chunk of the backward products; a segment is kChunksPerSegment of them.
inline constexpr int64_t kChunk = 32, kChunksPerSegment = 8;
inline int64_t chunk_tokens(int64_t N) { return N < kChunk ? kChunk / N : 1; }

}  // namespace lrnn::kernels
