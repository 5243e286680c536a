#pragma once
#include "ops/field.h"

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

struct SelectiveScanResult {
  torch::Tensor y;      // [B,T,D]; undefined without C
  torch::Tensor state;  // [B,D,N] (or [S,D,N]); float32 for bfloat16 inputs

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.y, result("y", "BTD", Kind::kIo, "C"));
    visit(out.state, result("state", "SDN", Kind::kWide));
  }
};

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
  // In C++: int64 [n], the rows of the flattened [B*T] at which y is wanted, rising. It is [1,n,D]
  // then, and C, z and u_at, which is u, are [1,n,..], at those rows alone.
  torch::Tensor read_at = {}, u_at = {};

  static constexpr const char* kName = "selective_scan";
  using Result = SelectiveScanResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.u, main_input("u", "BTD"));
    visit(in.delta, needed("delta", "BTD"));
    visit(in.A, needed("A", "DN", Kind::kWide));
    visit(in.B, needed("B", "BTN"));
    visit(in.C, for_output("y", "C", "BTN"));
    visit(in.D, optional("D", "D", Kind::kWide, "y"));
    visit(in.z, optional("z", "BTD", Kind::kIo, "y"));
    visit(in.delta_bias, optional("delta_bias", "D", Kind::kWide));
    visit(in.state, optional("state", "SDN", Kind::kWide));
    visit(in.softplus, "softplus");
    visit(in.negative, "negative");
    visit(in.cu_seqlens, sequence_bounds());
  }
  void check() const;
};

SelectiveScanResult selective_scan(const SelectiveScan& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
SelectiveScanResult selective_scan_definition(const SelectiveScan& in);

}  // namespace lrnn::ops
