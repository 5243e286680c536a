#pragma once
#include <cstdint>

#include "kernels/delta_product.h"

// The chunkwise delta product (chunk.h) with a gate per key channel, for bfloat16 inputs: K in
// (16,128] a multiple of 8 and V of 16. A decay is a vector over the key channels and multiplies
// keys and queries, row by row: with a_i that from the chunk's beginning to micro-step i, r_i that
// from i to its end, and a_C that of all of it,
//
//   Kg = a k,  Qg = scale a q,  Kr = r k
//   L_ij = beta_i sum over channels of k_i k_j (decay from j to i),  P_ij likewise of q_i and k_j
//   D = T diag(beta) (V - Kg S),  O = Qg S + P D,  S' = diag(a_C) S + Kr^T D
//
// `prepare` makes these matrices for all chunks at once, for either direction.
namespace lrnn::kernels::cuda {

struct ChannelChunks {
  bool split = false;    // operands in two parts, T in three (chunk.h)
  void* work = nullptr;  // channel_work_size bytes: the matrices of all chunks
  // From forward, if anything is kept: the state before each chunk [slots,H,V,K], and what rounding
  // left of it and of the errors.
  uint16_t *states = nullptr, *states_lo = nullptr, *error_lo = nullptr;
  // From the backward sweep: the gradient of the state after each chunk, and what rounding left.
  uint16_t *dstates = nullptr, *dstates_lo = nullptr, *dv_lo = nullptr;
};

bool channel_chunk_fits(const DeltaProductInputs& p);  // sizes, type and chip
int64_t channel_work_size(const DeltaProductInputs& p, bool split);

void channel_prepare(const DeltaProductInputs& p, const ChannelChunks& w, void* stream);
// error: bfloat16 [B,H,T,N,V], or null where nothing is kept.
void channel_forward(const DeltaProductForward& p, const ChannelChunks& w, void* stream);
// Backward in two steps.
void channel_reverse(const DeltaProductBackward& p, const ChannelChunks& w, void* stream);
void channel_gradients(const DeltaProductBackward& p, const ChannelChunks& w, void* stream);

}  // namespace lrnn::kernels::cuda
