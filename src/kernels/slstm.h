#pragma once
#include "kernels/dispatch.h"
#include "kernels/types.h"

// The sLSTM cell on the CPU, forward and backward, free of torch. ops/slstm/slstm.h says what it
// computes; this header says how it is split up.
//
// Every step needs the output of the step before through R, so time is a plain loop; what runs in
// parallel are heads and groups of sequences. Forward keeps the state after every step, no more
// than the input itself. Backward then has the sums of a whole chunk of steps as one product of the
// kept outputs with R, and so has dR; only the gradient of h runs step by step.
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise; wide arrays are contiguous. Gates are in the
// order i, f, z, o, and the four parts of a state h, c, n, m.
struct SlstmInputs {
  Type type = Type::kFloat32;  // of wx, h and their gradients
  int64_t B = 0, T = 0, H = 0, D = 0;
  int64_t S = 0;                        // sequences: B, or what cu_seqlens says
  const int64_t* cu_seqlens = nullptr;  // [S+1], B = 1: where the packed sequences begin and end
  Rows wx;                              // [B,T,H,4,D]: a step is a gate
  const void* R = nullptr;              // wide [H,D,4,D]
  const void* bias = nullptr;           // wide [H,4,D], or null for zeros
  const void* state = nullptr;          // wide [S,4,H,D], or null for zeros
};

struct SlstmForward : SlstmInputs {
  Rows h;                       // [B,T,H,D]
  void* final_state = nullptr;  // wide [S,4,H,D]
  void* steps = nullptr;        // wide [B,H,T,4,D], the state after each step, or null
};

struct SlstmBackward : SlstmInputs {
  Rows dh;                              // data null for zeros
  const void* d_final_state = nullptr;  // wide, or null for zeros
  const void* steps = nullptr;
  Rows dwx;
  void* dR = nullptr;      // wide [groups,H,D,4,D]: to be added up over the groups, in order
  void* dbias = nullptr;   // wide [groups,H,4,D], or null
  void* dstate = nullptr;  // wide [S,4,H,D], or null where nobody asks
};

// Sequences are worked on in this many groups, a function of their number alone.
inline int64_t slstm_groups(int64_t S) { return S < 1 ? 1 : S < 32 ? S : 32; }

LRNN_KERNEL(slstm_forward, SlstmForward)
LRNN_KERNEL(slstm_backward, SlstmBackward)

}  // namespace lrnn::kernels
