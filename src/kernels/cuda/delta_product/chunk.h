#pragma once
#include <cstdint>

#include "kernels/delta_product.h"

// The chunkwise delta product for bfloat16 inputs, K <= 256 a multiple of 8 and V of 16, keys and
// values of consecutive micro-steps evenly spaced, rows on 16 bytes.
//
// Per chunk of 64 micro-steps, with D the pseudo-values (what is written along each key); this is
// the WY representation of a product of Householder-like factors, with T as in its UT transform:
//   D = T diag(beta) (V - diag(a) K S),  O = scale diag(a) Q S + P D,  S' = a_C S + (diag(r) K)^T D
// T, the inverse of a unit triangular matrix, and P do not depend on the state: `prepare` makes
// them for all chunks at once, the sweeps follow the state from chunk to chunk.
namespace lrnn::kernels::cuda {

// The workspace of a call. `split`: T and P also as their lo halves, what rounding to bfloat16 left
// over, and so is all that the gradients read, because their sums over a chunk cancel where keys
// are alike. T is rounded twice: its rows have the largest sums of terms that cancel.
struct ChunkWork {
  uint16_t *T = nullptr, *T_lo = nullptr;  // [slots,H,64,64], [slots,H,2,64,64]
  uint16_t *P = nullptr, *P_lo = nullptr;  // [slots,H,rows,64]
  float* vectors = nullptr;                // [slots,H,5,64]
  float* logs = nullptr;  // [slots,H,64]: of the decays up to each, where sweeps make P with a gate
  // From forward, if anything is kept, and from the backward sweep.
  uint16_t *states_lo = nullptr, *error_lo = nullptr;  // as states and error
  uint16_t *dstates_lo = nullptr, *dv_lo = nullptr;    // as states and error
  int rows = 0;                                        // of P: 64 for N = 1, else 32
  bool split = false;
};

// Where few sequences would leave the chip idle, each is cut into segments that are walked at once:
// the first ones, whose states before them are known, beside the maps S -> M S + B of every one
// between the first and the last; then, from the true states between them, all others.
struct Segments {
  int count = 1;              // in a sequence, if none are packed
  int chunks = 0, first = 0;  // in each but the first and the last; in the first; 0: not cut
  float* maps = nullptr;      // M, [slots,H,64 or 128 squared], not of the first and last
  float* between = nullptr;   // [slots,H,padded K,V]: B, then the state after each but the last
};
int64_t segment_slots(const DeltaProductInputs& p, const Segments& segments);  // of all sequences
int64_t segment_map_size(const DeltaProductInputs& p);                         // floats in a map
// Whether the sweeps make P themselves, from the keys and queries they read anyway. With split
// operands that would take them too long, so preparation does.
bool sweeps_make_P(const DeltaProductInputs& p, bool split);
// Values of a kept state, [V,K], or, where the Hopper kernels keep it, as they multiply it:
// [64 or 128 padded keys / 64, V, 64], swizzled (wgmma.cuh).
int64_t state_size(const DeltaProductInputs& p);

// Where backward keeps the gradients of the state after each chunk, in bfloat16. One is V rows of K
// values (padded as state_size says). The Hopper kernels put its first rows where dK and dQ of the
// same chunk are going to be, if those are as wide: the block that makes them has read the gradient
// by then. A chunk of fewer than 64 micro-steps has too few rows to lend; there is one at most in a
// sequence. Where operands are split nothing is lent: rows that lie apart take longer to fetch, and
// those kernels have no room to fetch ahead.
struct StateGradients {
  int in_dk = 0, in_dq = 0;    // rows lent
  uint16_t* chunks = nullptr;  // [slots,H,V - lent,K]: the other rows
  uint16_t* ends = nullptr;    // [S,H,lent,K]: the first ones after a sequence's last chunk
};
StateGradients lend_rows(const DeltaProductBackward& p, bool split);
// Values in the two.
int64_t chunks_size(const DeltaProductBackward& p, const StateGradients& at);
int64_t ends_size(const DeltaProductBackward& p, const StateGradients& at);

// K, V, the type, and whether this chip has the shared memory, for operands in two parts or one.
bool chunk_fits(const DeltaProductInputs& p, bool split);
int chunk_query_rows(int64_t N);
int64_t chunk_count(const DeltaProductInputs& p);  // slots

void chunk_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream);
// error: bfloat16 [B,H,T,N,V]; states: bfloat16 [slots,H,V,K]; or null.
void chunk_forward(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                   void* stream);
// The same sweeps on Hopper's own instructions, for K in (32,128] and V a multiple of 64;
// chunk_forward and chunk_reverse call them where they fit and this chip has them.
bool hopper_fits(const DeltaProductInputs& p);
void hopper_prepare(const DeltaProductInputs& p, const ChunkWork& w, void* stream);
void hopper_forward(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                    void* stream);
// Preparation and sweep in one kernel, for K = V = 128, bfloat16 operands, queries, and where
// nothing is kept for backward. False where rows lie so that the copy engine cannot bring them:
// nothing was done then. chunk_fused_forward: also where this build is not for Hopper.
bool hopper_fused_forward(const DeltaProductForward& p, void* stream);
bool chunk_fused_forward(const DeltaProductForward& p, void* stream);
void hopper_reverse(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                    const StateGradients& dstates, void* stream);
// The states between segments from that after the first, forwards, or their gradients from that
// before the last.
void hopper_join(const DeltaProductInputs& p, const Segments& segments, bool forwards, bool split,
                 void* stream);
void hopper_gradients(const DeltaProductBackward& p, const ChunkWork& w,
                      const StateGradients& dstates, void* stream);
// Backward in two steps.
void chunk_reverse(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                   const StateGradients& dstates, void* stream);
void chunk_gradients(const DeltaProductBackward& p, const ChunkWork& w,
                     const StateGradients& dstates, void* stream);

}  // namespace lrnn::kernels::cuda
