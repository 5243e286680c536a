#pragma once
#include <torch/types.h>

// The selective scan, the recurrence under Mamba. Per channel d, with the state h [N]:
//
//   dt = softplus(delta_t + delta_bias)                  or without the softplus
//   h <- a h + dt B_t u_t,   a = exp(dt A)               or 2 exp(dt A) - 1 with `negative`
//   y_t = (C_t . h + D u_t) silu(z_t)                    D and z where they are given
//
// With A < 0 the diagonal transition a lies in [0,1], or in [-1,1] with `negative`, which is what
// lets it count modulo two. Gradients flow to every input, the initial state included, and back
// from the final state.
namespace lrnn::ops {

struct SelectiveScan {
  torch::Tensor u, delta;    // [B,T,D]
  torch::Tensor A;           // [D,N]
  torch::Tensor B;           // [B,T,N]
  torch::Tensor C;           // [B,T,N]; undefined: no outputs are wanted, only the state
  torch::Tensor D;           // [D], or undefined
  torch::Tensor z;           // [B,T,D], or undefined
  torch::Tensor delta_bias;  // [D], or undefined
  torch::Tensor state;       // [B,D,N], or undefined for zeros
  bool softplus = true, negative = false;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences end to end; the state is
                             // then [S,D,N]. Undefined: B sequences of length T
};

struct SelectiveScanResult {
  torch::Tensor y;      // [B,T,D]; undefined without C
  torch::Tensor state;  // [B,D,N] (or [S,D,N]); float32 for bfloat16 inputs
};

SelectiveScanResult selective_scan(const SelectiveScan& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
SelectiveScanResult selective_scan_definition(const SelectiveScan& in);

}  // namespace lrnn::ops
