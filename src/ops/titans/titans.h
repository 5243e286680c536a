#pragma once
#include "ops/field.h"

// The linear memory of Titans (Behrouz et al. 2024): gradient descent with momentum and forgetting
// on |M^T k - v|^2 / 2, one step a token. Per head, with the memory M [K,V] and its momentum S
// [K,V], for each token t:
//
//   S <- eta_t S - theta_t k_t (M^T k_t - v_t)^T
//   M <- (1 - alpha_t) M + S
//   o_t = scale M^T q_t
//
// The gradient is taken at the memory of the token before, and before it forgets. With |k| = 1 the
// pair (M, S) is multiplied by [[1-alpha-theta, eta], [-theta, eta]] along k and by
// [[1-alpha, eta], [0, eta]] elsewhere. With theta <= (2 - alpha)(1 + eta), gates in [0,1], no
// eigenvalue is larger than 1; theta up to 1 always is such. eta = 0 leaves DeltaNet with a gate
// that forgets after the error was read. Gradients flow to every input, the initial state included,
// and back from the final state.
namespace lrnn::ops {

struct TitansResult {
  torch::Tensor o;                // [B,T,H,V]; undefined without q
  torch::Tensor state, momentum;  // [B,H,K,V] (or [S,H,K,V]); float32 for bfloat16 inputs

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.o, result("o", "BTHV", Kind::kIo, "q"));
    visit(out.state, result("state", "SHKV", Kind::kWide));
    visit(out.momentum, result("momentum", "SHKV", Kind::kWide));
  }
};

struct Titans {
  torch::Tensor q;                  // [B,T,H,K]; undefined: no outputs are wanted, only the state
  torch::Tensor k;                  // [B,T,H,K]
  torch::Tensor v;                  // [B,T,H,V]
  torch::Tensor theta, eta, alpha;  // [B,T,H]: step, momentum that is kept, memory that is lost
  torch::Tensor state, momentum;    // [B,H,K,V], or undefined for zeros
  double scale = 1;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences end to end; the states
                             // are then [S,H,K,V]. Undefined: B sequences of length T
  torch::Tensor read_at = {};  // in C++: where o is wanted, and q given, as in DeltaProduct

  static constexpr const char* kName = "titans";
  using Result = TitansResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.q, for_output("o", "q", "BTHK"));
    visit(in.k, main_input("k", "BTHK"));
    visit(in.v, needed("v", "BTHV"));
    visit(in.theta, needed("theta", "BTH", Kind::kIoOrWide));
    visit(in.eta, needed("eta", "BTH", Kind::kIoOrWide));
    visit(in.alpha, needed("alpha", "BTH", Kind::kIoOrWide));
    visit(in.state, optional("state", "SHKV", Kind::kWide));
    visit(in.momentum, optional("momentum", "SHKV", Kind::kWide));
    visit(in.scale, "scale");
    visit(in.cu_seqlens, sequence_bounds());
  }
};

TitansResult titans(const Titans& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
TitansResult titans_definition(const Titans& in);

}  // namespace lrnn::ops
