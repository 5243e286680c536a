#pragma once
#include <optional>

#include "ops/heads_result.h"

// Gated linear attention (GLA). Per head, with the state S [K,V], for each token t:
//
//   S <- diag(a_t) S + k_t v_t^T,   a_t = exp(log_gate_t)      or 2 exp(log_gate_t) - 1
//   o_t = scale S^T q_t
//
// With log_gate <= 0 the diagonal transition lies in [0,1], or in [-1,1] with `negative`, an
// extension of ours. Gradients flow to every input, the initial state included, and back from the
// final state.
namespace lrnn::ops {

// o [B,T,H,V], undefined without q; state [B,H,K,V] (or [S,H,K,V]), float32 for bfloat16 inputs
using GatedLinearAttentionResult = HeadsResult<'q'>;

struct GatedLinearAttention {
  torch::Tensor q;              // [B,T,H,K]; undefined: no outputs are wanted, only the state
  torch::Tensor k;              // [B,T,H,K]
  torch::Tensor v;              // [B,T,H,V]
  torch::Tensor log_gate;       // [B,T,H,K]
  torch::Tensor state;          // [B,H,K,V], or undefined for zeros
  std::optional<double> scale;  // K^-1/2 by default
  bool negative = false;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences end to end; the state is
                             // then [S,H,K,V]. Undefined: B sequences of length T
  torch::Tensor read_at = {};  // in C++: where o is wanted, and q given, as in DeltaProduct

  static constexpr const char* kName = "gated_linear_attention";
  using Result = GatedLinearAttentionResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.q, for_output("o", "q", "BTHK"));
    visit(in.k, main_input("k", "BTHK"));
    visit(in.v, needed("v", "BTHV"));
    visit(in.log_gate, needed("log_gate", "BTHK", Kind::kIoOrWide));
    visit(in.state, optional("state", "SHKV", Kind::kWide));
    visit(in.scale, "scale");
    visit(in.negative, "negative");
    visit(in.cu_seqlens, sequence_bounds());
  }
};

GatedLinearAttentionResult gated_linear_attention(const GatedLinearAttention& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
GatedLinearAttentionResult gated_linear_attention_definition(const GatedLinearAttention& in);

}  // namespace lrnn::ops
