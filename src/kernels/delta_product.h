#pragma once
#include <cstdint>

#include "kernels/dispatch.h"
#include "kernels/types.h"

// The delta product on the CPU, forward and backward, free of torch.
// ops/delta_product/delta_product.h says what it computes; this header says how it is split up.
//
// Forward is a scan: one pass over the state per micro-step, or per two where that is faster, does
// the update, the read-out and the products with the next keys, so each state element is loaded and
// stored once for three multiply-adds or more. The state is cut into column blocks that stay in the
// L1 cache.
//
// Backward runs the same scan in reverse for the gradient of the state, which also gives the
// gradient of every written value; all other gradients are then matrix products over chunks of
// micro-steps. It reads the errors v - S^T k kept by forward, and the state at every segment.
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise; wide arrays are contiguous.
struct DeltaProductInputs {
  Type type = Type::kFloat32;  // of q, k, v and their gradients
  int64_t B = 0, T = 0, N = 1, H = 0, K = 0, V = 0;
  int64_t S = 0;                        // sequences: B, or what cu_seqlens says
  const int64_t* cu_seqlens = nullptr;  // [S+1], B = 1: where the packed sequences begin and end
  double scale = 1;
  SharedRows q, k;                 // of fewer heads than H, maybe; q.data null: no outputs
  const void* beta = nullptr;      // wide [B,T,N,H]
  const void* log_gate = nullptr;  // wide [B,T,H], or null for a gate of 1
  bool channels = false;           // log_gate is [B,T,H,K]: one gate per key channel
  const void* state = nullptr;     // wide [S,H,K,V], or null for zeros
};

struct DeltaProductForward : DeltaProductInputs {
  Rows v, o;
  void* final_state = nullptr;  // wide [S,H,K,V]
  void* error = nullptr;        // wide [B,H,T,N,V], or null: what backward reads
  void* states = nullptr;       // wide [B,H,T / segment,K,V], or null
  int steps = 0;  // per pass, 1 or 2; 0: the faster (tests and benchmarks ask for one)
};

struct DeltaProductBackward : DeltaProductInputs {
  Rows d_o;                             // read where q is
  const void* d_final_state = nullptr;  // wide, or null for zeros
  const void* error = nullptr;
  const void* states = nullptr;
  Rows dq, dk, dv;            // of every head, also where heads share keys
  void* dbeta = nullptr;      // wide [B,T,N,H]
  void* dlog_gate = nullptr;  // wide, as log_gate, where that is
  void* dstate = nullptr;     // wide [S,H,K,V], or null where nobody asks
};

// Tokens per chunk of the backward products; a segment is kDeltaProductChunks of them.
inline constexpr int64_t kDeltaProductChunks = 8;
inline int64_t delta_product_chunk(int64_t N) { return N < 32 ? 32 / N : 1; }
// Tokens between two kept states. A sequence's own first state is not kept: it is `state`.
inline int64_t delta_product_segment(int64_t N) {
  return delta_product_chunk(N) * kDeltaProductChunks;
}

LRNN_KERNEL(delta_product_forward, DeltaProductForward)
LRNN_KERNEL(delta_product_backward, DeltaProductBackward)

}  // namespace lrnn::kernels
