#pragma once
#include "ops/heads_result.h"

// The recurrence of RWKV-7. Per head, with the state S [K,V], for each token t:
//
//   S <- diag(e^w_t) S - (a_t kk_t)(kk_t^T S) + k_t v_t^T
//   o_t = scale S^T r_t
//
// kk^T S reads the state before its decay. With |kk| = 1 and one a for all keys the eigenvalue
// along kk is e^w - a. The published range of a is [0,1]; up to a = 2, an extension of ours, a
// state that does not decay is reflected, as by DeltaNet's beta = 2. One that does decay is then
// stretched: keep w near 0 there. Gradients flow to every input, the initial state included, and
// back from the final state.
namespace lrnn::ops {

// o [B,T,H,V], undefined without r; state [B,H,K,V] (or [S,H,K,V]), float32 for bfloat16 inputs
using Rwkv7Result = HeadsResult<'r'>;

struct Rwkv7 {
  torch::Tensor r;      // [B,T,H,K]; undefined: no outputs are wanted, only the state
  torch::Tensor log_w;  // [B,T,H,K]
  torch::Tensor k;      // [B,T,H,K]
  torch::Tensor v;      // [B,T,H,V]
  torch::Tensor kk, a;  // [B,T,H,K]
  torch::Tensor state;  // [B,H,K,V], or undefined for zeros
  double scale = 1;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences end to end; the state is
                             // then [S,H,K,V]. Undefined: B sequences of length T
  torch::Tensor read_at = {};  // in C++: where o is wanted, and r given, as in DeltaProduct

  static constexpr const char* kName = "rwkv7";
  using Result = Rwkv7Result;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.r, for_output("o", "r", "BTHK"));
    visit(in.log_w, needed("log_w", "BTHK", Kind::kIoOrWide));
    visit(in.k, main_input("k", "BTHK"));
    visit(in.v, needed("v", "BTHV"));
    visit(in.kk, needed("kk", "BTHK"));
    visit(in.a, needed("a", "BTHK"));
    visit(in.state, optional("state", "SHKV", Kind::kWide));
    visit(in.scale, "scale");
    visit(in.cu_seqlens, sequence_bounds());
  }
};

Rwkv7Result rwkv7(const Rwkv7& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
Rwkv7Result rwkv7_definition(const Rwkv7& in);

}  // namespace lrnn::ops
