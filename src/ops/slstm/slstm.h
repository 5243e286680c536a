#pragma once
#include "ops/field.h"

// The sLSTM cell of xLSTM, a recurrence that is not linear: each of the gates i, f, z, o sees the
// output of the step before through R. Per head and unit, with a state (h, c, n, m), for each
// token:
//
//   (i, f, z, o) = wx + R h + bias
//   a  = log sigmoid(f) + m          m' = i where n = 0, the first step, and max(i, a) after it
//   c' = exp(a - m') c + exp(i - m') tanh(z)
//   n' = exp(a - m') n + exp(i - m')
//   h' = sigmoid(o) c' / n'
//
// m keeps the exponentials in range. Gradients flow to every input, the state included, and back
// from the final state.
namespace lrnn::ops {

struct SlstmResult {
  torch::Tensor h;      // [B,T,H,D]
  torch::Tensor state;  // [B,4,H,D] (or [S,4,H,D]); float32 for bfloat16 inputs

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.h, result("h", "BTHD"));
    visit(out.state, result("state", "S4HD", Kind::kWide));
  }
};

struct Slstm {
  torch::Tensor wx;            // [B,T,H,4,D]: what the gates get from the input
  torch::Tensor R;             // [H,D,4,D]: from unit (first D) to gate and unit
  torch::Tensor bias;          // [H,4,D], or undefined for zeros
  torch::Tensor state;         // [B,4,H,D]: h, c, n, m; or undefined for zeros
  torch::Tensor cu_seqlens;    // int64 [S+1]: B = 1 and T holds S sequences; the state is [S,4,H,D]
  torch::Tensor read_at = {};  // in C++: int64 [n], rows of [B*T]: h there alone, [1,n,H,D]

  static constexpr const char* kName = "slstm";
  using Result = SlstmResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.wx, main_input("wx", "BTH4D"));
    visit(in.R, needed("R", "HD4D", Kind::kIoOrWide));
    visit(in.bias, optional("bias", "H4D", Kind::kIoOrWide));
    visit(in.state, optional("state", "S4HD", Kind::kWide));
    visit(in.cu_seqlens, sequence_bounds());
  }
};

SlstmResult slstm(const Slstm& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
SlstmResult slstm_definition(const Slstm& in);

}  // namespace lrnn::ops
