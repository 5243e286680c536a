#pragma once
#include "kernels/dispatch.h"
#include "kernels/types.h"

// The linear memory of Titans on the CPU. Per head, with the memory M and its momentum S, both
// [K,V], for each token t:
//
//   e = M^T k - v
//   S <- eta S - theta k e^T
//   M <- (1 - alpha) M + S
//   o = scale M^T q
//
// Forward keeps values in the lanes: one pass over both matrices per token does the update, the
// read-out and the product with the next key. Backward keeps keys in the lanes, where all sums but
// two are over values. It goes through chunks of tokens from the last to the first and computes the
// states of a chunk again from those kept at its beginning.
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise.
struct TitansInputs : HeadsInputs {
  Rows q, k, v;                                                   // q.data null: no outputs
  const void *theta = nullptr, *eta = nullptr, *alpha = nullptr;  // wide contiguous [B,T,H]
  const void *state = nullptr, *momentum = nullptr;  // wide contiguous [S,H,K,V], or null for zeros
};

struct TitansForward : TitansInputs {
  Rows o;
  void *final_state = nullptr, *final_momentum = nullptr;  // wide contiguous [S,H,K,V]
  void* states = nullptr;  // wide contiguous [B,H,T / chunk,2,K,V], or null: for backward
};

struct TitansBackward : TitansInputs {
  Rows d_o;                                                          // read where q is
  const void *d_final_state = nullptr, *d_final_momentum = nullptr;  // null for zeros
  const void* states = nullptr;
  Rows dq, dk, dv;
  void *dtheta = nullptr, *deta = nullptr, *dalpha = nullptr;  // wide contiguous [B,T,H]
  void *dstate = nullptr, *dmomentum = nullptr;                // null where nobody asks
};

// Tokens between two kept states. A sequence's own first state is not kept: it is an input.
inline constexpr int64_t kTitansChunk = 32;

LRNN_KERNEL(titans_forward, TitansForward)
LRNN_KERNEL(titans_backward, TitansBackward)

}  // namespace lrnn::kernels
