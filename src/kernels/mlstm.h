#pragma once
#include "kernels/dispatch.h"
#include "kernels/types.h"

// The mLSTM cell on the CPU, forward and backward, free of torch. ops/mlstm/mlstm.h says what it
// computes; this header says how it is split up.
//
// The recurrence is linear in the state and its gates are numbers, so a chunk of tokens is a few
// matrix products. The stabiliser m runs through the chunk first; the gates f' and i' that it
// leaves lie in [0, 1] and are only ever multiplied, so the chunk computes what the recurrence
// computes, to rounding, however long it is. Forward keeps the state at the beginning of every
// chunk.
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise; wide arrays are contiguous.
struct MlstmInputs : HeadsInputs {
  double eps = 0;
  Rows q, k, v;
  const void *i = nullptr, *f = nullptr;                // wide [B,T,H]
  const void *C = nullptr, *n = nullptr, *m = nullptr;  // wide [S,H,K,V] [S,H,K] [S,H], or null
};

struct MlstmForward : MlstmInputs {
  Rows h;
  void *final_C = nullptr, *final_n = nullptr, *final_m = nullptr;
  void* states = nullptr;  // wide [B,H,T / chunk,K*V+K+1], or null: C, n and m at later chunks
};

struct MlstmBackward : MlstmInputs {
  Rows dh;                                                                   // data null for zeros
  const void *dfinal_C = nullptr, *dfinal_n = nullptr, *dfinal_m = nullptr;  // null for zeros
  const void *final_C = nullptr, *final_n = nullptr;                         // read where those are
  const void* states = nullptr;
  Rows dq, dk, dv;
  void *di = nullptr, *df = nullptr;                 // wide [B,T,H]
  void *dC = nullptr, *dn = nullptr, *dm = nullptr;  // or null where nobody asks
};

inline constexpr int64_t kMlstmChunk = 64;

LRNN_KERNEL(mlstm_forward, MlstmForward)
LRNN_KERNEL(mlstm_backward, MlstmBackward)

}  // namespace lrnn::kernels
