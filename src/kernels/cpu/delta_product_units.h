#pragma once
#include <cstddef>

#include "kernels/delta_product.h"

// Between the dispatcher and the files built per instruction set: one unit is one head of one
// sequence, and each instruction set offers one function per type and direction.
namespace lrnn::kernels {

struct Unit {
  int64_t sequence, head;
  int64_t batch, begin, length;  // where its tokens are
};

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

// Scratch of this thread, 64-byte aligned, valid until the next call. Kept between calls because
// fresh pages cost more than the arithmetic of a short sequence.
void* thread_scratch(size_t bytes);

}  // namespace lrnn::kernels
