#pragma once
#include "kernels/dispatch.h"
#include "kernels/types.h"

// A state with a diagonal transition, or a diagonal plus a rank-one one, on the CPU: the recurrence
// under gated linear attention and RWKV-7. Per head, with the state S [K,V], for each token t:
//
//   S <- diag(a) S - (rate kk)(kk^T S) + k v^T        a = exp(log_decay), or 2 exp(log_decay) - 1
//   o = scale S^T q
//
// Forward keeps values in the lanes, so that nothing is summed across them: one pass over the state
// per token does the update, the read-out and the product with the next kk. Backward keeps keys in
// the lanes, where all but two of its sums are over values. It goes through chunks of tokens from
// the last to the first and computes the states of a chunk again from the one kept at its
// beginning.
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise.
struct DiagonalInputs : HeadsInputs {
  bool negative = false;
  Rows q, k, v;                 // q.data null: no outputs
  Rows log_decay;               // wide [B,T,H,K]
  Rows kk, rate;                // both null: no rank-one term
  const void* state = nullptr;  // wide contiguous [S,H,K,V], or null for zeros
};

struct DiagonalForward : DiagonalInputs {
  Rows o;
  void* final_state = nullptr;  // wide contiguous [S,H,K,V]
  void* states = nullptr;       // wide contiguous [B,H,T / chunk,K,V], or null: for backward
};

struct DiagonalBackward : DiagonalInputs {
  Rows d_o;                             // read where q is
  const void* d_final_state = nullptr;  // wide contiguous, or null for zeros
  const void* states = nullptr;
  Rows dq, dk, dv, dkk, drate;
  Rows dlog_decay;         // wide
  void* dstate = nullptr;  // wide contiguous [S,H,K,V], or null where nobody asks
};

// Tokens between two kept states. A sequence's own first state is not kept: it is `state`.
inline constexpr int64_t kDiagonalChunk = 32;

LRNN_KERNEL(diagonal_forward, DiagonalForward)
LRNN_KERNEL(diagonal_backward, DiagonalBackward)

}  // namespace lrnn::kernels
