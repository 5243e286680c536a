#pragma once
#include "kernels/cpu/units.h"
#include "kernels/delta_product.h"

// Between the dispatcher and the files built per instruction set, each of which offers one function
// per type and direction.
namespace lrnn::kernels {

struct DeltaProductUnits {
  void (*forward[3])(const DeltaProductForward&, Team);    // by Type
  void (*backward[3])(const DeltaProductBackward&, Team);  // by Type
};
extern const DeltaProductUnits kDeltaProductBaseline;
extern const DeltaProductUnits kDeltaProductAvx2;
extern const DeltaProductUnits kDeltaProductAvx512;

// Tokens that forward walks of one head before it turns to the next of a team: even, so that pairs
// of micro-steps are the same ones whatever the stretch.
inline constexpr int64_t kStretch = 64;

// Tokens per chunk of the backward products; a segment is kChunksPerSegment of them.
inline constexpr int64_t kChunk = 32, kChunksPerSegment = 8;
inline int64_t chunk_tokens(int64_t N) { return N < kChunk ? kChunk / N : 1; }

}  // namespace lrnn::kernels
