#pragma once
#include "kernels/dispatch.h"
#include "kernels/types.h"

// TTT-Linear on the CPU (ops/ttt/ttt.h has the formulas), a mini-batch at a time: within one all
// gradients G are taken at the same weights A, so a piece of it with n tokens is a few products of
// matrices. With the weights W at its beginning, rows k, q, G [n,D] as K, Q, G, and biases as rows
// under W and A, under a column of ones beside K and Q:
//
//   Z = K A,   G by rows of Z,   O = Q + LN(Q W - (C diag(eta)) G),   C = tril(Q K^T)
//   W <- W - K^T diag(eta) G
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise.
struct TttInputs {
  Type type = Type::kFloat32;  // of the rows and their gradients, where nothing else is said
  int64_t B = 0, T = 0, H = 0, D = 0;
  int64_t S = 0;                        // sequences: B, or what cu_seqlens says
  const int64_t* cu_seqlens = nullptr;  // [S+1], B = 1
  int64_t mini_batch = 1;
  double eps = 0;
  Rows q, k, v;                                   // q.data null: no outputs
  const void* eta = nullptr;                      // wide contiguous [B,T,H]
  const void *weight = nullptr, *bias = nullptr;  // wide contiguous [H,D]
  const void *W = nullptr, *b = nullptr;          // wide [S,2,H,D,D], [S,2,H,D]; null: zeros
  const void* position = nullptr;                 // wide [S]; null: zeros
};

struct TttForward : TttInputs {
  Rows o;
  void *final_W = nullptr, *final_b = nullptr, *final_position = nullptr;
  void* kept = nullptr;  // wide [ttt_slots,H,D+1,D], or null: W and b before every piece
};

struct TttBackward : TttInputs {
  Rows d_o;                                               // read where q is
  const void *d_final_W = nullptr, *d_final_b = nullptr;  // null for zeros
  const void* kept = nullptr;
  Rows dq, dk, dv;
  void* deta = nullptr;               // wide contiguous [B,T,H]
  void *dW = nullptr, *db = nullptr;  // null where nobody asks
  void* dnorm = nullptr;              // wide [S,H,2,D]: of weight and bias, by sequence
};

// A sequence of n tokens meets at most n / mini_batch + 2 mini-batches, wherever in one it begins.
// The pieces of all sequences are numbered through, some numbers are not used.
inline int64_t ttt_slots(const TttInputs& p) {
  return p.cu_seqlens ? p.T / p.mini_batch + 2 * p.S : p.S * (p.T / p.mini_batch + 2);
}

LRNN_KERNEL(ttt_forward, TttForward)
LRNN_KERNEL(ttt_backward, TttBackward)

}  // namespace lrnn::kernels
