#pragma once
#include "base/error.h"
#include "ops/field.h"

// TTT-Linear (Sun et al. 2024): a linear model f with a layer norm, taught by gradient descent on
// |f(k) - v|^2 / 2 while the sequence goes by. Per head, with weights W [D,D] and b [D]:
//
//   f(x; W, b) = x + LN(W^T x + b),   LN(z) = weight (z - mean) / sqrt(variance + eps) + bias
//   G_t = the gradient of |f(k_t; W, b) - v_t|^2 / 2 by its W^T k_t + b, at the W and b with which
//         the mini-batch of token t began
//   W <- W - eta_t k_t G_t^T,   b <- b - eta_t G_t
//   o_t = f(q_t; W, b)
//
// Mini-batches are `mini_batch` tokens, counted from the beginning of the sequence. A state holds
// both weights, as they are now and as they were when the mini-batch began, and how many of its
// tokens have been seen: results do not depend on where a sequence is cut. G is not linear in W.
// Gradients flow to every input, the initial state included but for `position`, and back from the
// final state.
namespace lrnn::ops {

struct TttResult {
  torch::Tensor o;         // [B,T,H,D]; undefined without q
  torch::Tensor W, b;      // [B,2,H,D,D], [B,2,H,D] (or [S,..]); float32 for bfloat16 inputs
  torch::Tensor position;  // [B] (or [S])

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.o, result("o", "BTHD", Kind::kIo, "q"));
    visit(out.W, result("W", "S2HDD", Kind::kWide));
    visit(out.b, result("b", "S2HD", Kind::kWide));
    visit(out.position, result("position", "S", Kind::kWide));
  }
};

struct Ttt {
  torch::Tensor q;             // [B,T,H,D]; undefined: no outputs are wanted, only the state
  torch::Tensor k, v;          // [B,T,H,D]
  torch::Tensor eta;           // [B,T,H]: the step
  torch::Tensor weight, bias;  // [H,D]: of the layer norm
  torch::Tensor W, b;      // [B,2,H,D,D], [B,2,H,D]: now, and when the mini-batch began; or zeros
  torch::Tensor position;  // [B]: tokens of the mini-batch so far, below mini_batch; or zeros
  int64_t mini_batch = 16;
  double eps = 1e-6;
  torch::Tensor cu_seqlens;  // int64 [S+1]: B = 1 and T holds S sequences end to end; the state has
                             // S rows then. Undefined: B sequences of length T
  torch::Tensor read_at = {};  // in C++: where o is wanted, and q given, as in DeltaProduct

  static constexpr const char* kName = "ttt";
  static constexpr int64_t kLongestBatch = 64;
  using Result = TttResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.q, for_output("o", "q", "BTHD"));
    visit(in.k, main_input("k", "BTHD"));
    visit(in.v, needed("v", "BTHD"));
    visit(in.eta, needed("eta", "BTH", Kind::kIoOrWide));
    visit(in.weight, needed("weight", "HD", Kind::kIoOrWide));
    visit(in.bias, needed("bias", "HD", Kind::kIoOrWide));
    visit(in.W, optional("W", "S2HDD", Kind::kWide));
    visit(in.b, optional("b", "S2HD", Kind::kWide));
    visit(in.position, optional("position", "S", Kind::kWide));
    visit(in.mini_batch, "mini_batch");
    visit(in.eps, "eps");
    visit(in.cu_seqlens, sequence_bounds());
  }
  void check() const {
    lrnn::check(mini_batch >= 1 && mini_batch <= kLongestBatch, "[ttt] mini_batch must be 1 to ",
                kLongestBatch, " tokens, got ", mini_batch);
    lrnn::check(eps > 0, "[ttt] eps must be above 0, got ", eps);
  }
};

TttResult ttt(const Ttt& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
TttResult ttt_definition(const Ttt& in);

}  // namespace lrnn::ops
