#pragma once
#include <optional>

#include "ops/field.h"

// The mLSTM cell of xLSTM: a matrix memory C with a normaliser n, an exponential input gate and a
// sigmoid forget gate. Per head, with k' = scale k, for each token:
//
//   m' = max(log sigmoid(f) + m, i)          m = -inf before the first token
//   C' = exp(log sigmoid(f) + m - m') C + exp(i - m') k' v^T
//   n' = exp(log sigmoid(f) + m - m') n + exp(i - m') k'
//   h  = C'^T q / (max(|n' . q|, exp(-m')) + eps)
//
// m keeps the exponentials in range. Gradients flow to every input, the state included, and back
// from the final state.
namespace lrnn::ops {

struct MlstmState {
  torch::Tensor C, n, m;  // [B,H,K,V] [B,H,K] [B,H]; all undefined: the beginning of time
};

struct MlstmResult {
  torch::Tensor h;   // [B,T,H,V]
  MlstmState state;  // float32 for bfloat16 inputs

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.h, result("h", "BTHV"));
    visit(out.state.C, saved_result("C", "SHKV", Kind::kWide));
    visit(out.state.n, saved_result("n", "SHK", Kind::kWide));
    visit(out.state.m, result("m", "SH", Kind::kWide));
  }
};

struct Mlstm {
  torch::Tensor q, k;  // [B,T,H,K]
  torch::Tensor v;     // [B,T,H,V]
  torch::Tensor i, f;  // [B,T,H], before the exponential and the sigmoid
  MlstmState state;
  std::optional<double> scale;  // K^-1/2 by default
  double eps = 1e-6;
  torch::Tensor cu_seqlens;    // int64 [S+1]: B = 1 and T holds S sequences; the state has S rows
  torch::Tensor read_at = {};  // in C++: int64 [n], rows of [B*T]: h there alone, [1,n,H,V]

  static constexpr const char* kName = "mlstm";
  using Result = MlstmResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.q, main_input("q", "BTHK"));
    visit(in.k, needed("k", "BTHK"));
    visit(in.v, needed("v", "BTHV"));
    visit(in.i, needed("i", "BTH", Kind::kIoOrWide));
    visit(in.f, needed("f", "BTH", Kind::kIoOrWide));
    visit(in.state.C, optional("C", "SHKV", Kind::kWide));
    visit(in.state.n, optional("n", "SHK", Kind::kWide));
    visit(in.state.m, optional("m", "SH", Kind::kWide));
    visit(in.scale, "scale");
    visit(in.eps, "eps");
    visit(in.cu_seqlens, sequence_bounds());
  }
  void check() const;
};

// Chunk by chunk, with matrix products.
MlstmResult mlstm(const Mlstm& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
MlstmResult mlstm_definition(const Mlstm& in);

}  // namespace lrnn::ops
