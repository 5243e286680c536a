#pragma once
#include <optional>
#include <string>

#include "ops/heads_result.h"

// The delta product, the recurrence under DeltaNet, Gated DeltaNet and DeltaProduct. Per head, with
// the state S [K,V], for each token t:
//
//   S <- a_t S                              a_t = exp(log_gate_t), 1 without a gate; or, with a
//                                           gate per key channel, S <- diag(a_t) S
//   for j = 0 .. N-1:  S <- S + beta_tj k_tj (v_tj - S^T k_tj)^T
//   o_t = scale S^T q_t
//
// Keys and queries may have fewer heads than values: G key heads for H value heads, H a multiple of
// G. Head h then reads key head h / (H / G), as if every key head stood H / G times in a row; the
// gradient of a key is the sum over the heads that read it, in their order.
//
// With a gate per key channel and N = 1 it is Kimi Delta Attention. The channels are those of the
// rows of S, of every value head its own, also where heads share keys.
//
// With |k| = 1 the transition I - beta k k^T is a projection at beta = 1 and a reflection at
// beta = 2, which is what lets it count modulo two. Gradients flow to every input, the initial
// state included, and back from the final state.
namespace lrnn::ops {

// o [B,T,H,V], undefined without q; state [B,H,K,V] (or [S,H,K,V]), float32 for bfloat16 inputs
using DeltaProductResult = HeadsResult<'q'>;

struct DeltaProduct {
  torch::Tensor q;              // [B,T,G,K]; undefined: no outputs are wanted, only the state
  torch::Tensor k;              // [B,T,N,G,K]
  torch::Tensor v;              // [B,T,N,H,V]
  torch::Tensor beta;           // [B,T,N,H]
  torch::Tensor log_gate;       // [B,T,H]; or [B,T,H,K]; or undefined for a gate of 1
  torch::Tensor state;          // [B,H,K,V], or undefined for zeros
  std::optional<double> scale;  // K^-1/2 by default
  torch::Tensor cu_seqlens;     // int64 [S+1]: B = 1 and T holds S sequences end to end; the
                                // state is then [S,H,K,V]. Undefined: B sequences of length T
  // The least a kernel must give, for bfloat16 inputs; one that gives more may be used.
  //   fast      bfloat16 products: fine for beta <= 1, off by percents at 2 unless a gate forgets
  //             faster than errors grow
  //   accurate  products of split operands: the state is good to about 1e-3 at beta = 2
  //   exact     the recurrence in float32
  // Empty: accurate. Other inputs are always exact.
  std::string accuracy = {};
  std::string precision = {};  // its name until 0.1; taken with a warning
  // In C++: int64 [n], the rows of the flattened [B*T] at which o is wanted, rising. It is
  // [1,n,H,V] then, and q may be [1,n,G,K], at those rows alone. Undefined: everywhere.
  torch::Tensor read_at = {};

  static constexpr const char* kName = "delta_product";
  using Result = DeltaProductResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.q, for_output("o", "q", "BTGK"));
    visit(in.k, main_input("k", "BTNGK"));
    visit(in.v, needed("v", "BTNHV").unread());
    visit(in.beta, needed("beta", "BTNH", Kind::kIoOrWide));
    // One argument of two shapes, not two arguments: a call has one gate, and whoever makes its
    // logarithm decides how fine it is.
    visit(in.log_gate, optional("log_gate", "BTH(K)", Kind::kIoOrWide));
    visit(in.state, optional("state", "SHKV", Kind::kWide));
    visit(in.scale, "scale");
    visit(in.cu_seqlens, sequence_bounds());
    visit(in.accuracy, "accuracy");
    visit(in.precision, "precision");
  }
  void check() const;
  bool gates_channels() const { return log_gate.defined() && log_gate.dim() == 4; }
};

DeltaProductResult delta_product(const DeltaProduct& in);
// The definition: the lines above in plain torch, any dtype, differentiated by torch itself.
DeltaProductResult delta_product_definition(const DeltaProduct& in);

}  // namespace lrnn::ops

// For its back ends alone, of both devices; cpu.cpp has them.
namespace lrnn::kernels {
struct DeltaProductInputs;
}
namespace lrnn::ops {

// Tensors in, pointers out: what the kernels read, from prepared inputs.
void fill(kernels::DeltaProductInputs& p, const DeltaProduct& in);
int64_t heads_per_key(const DeltaProduct& in);
// Memory for the gradients of keys or queries of every head, where several share them and `shared`
// will have their sums; else that itself.
torch::Tensor of_every_head(const torch::Tensor& shared, int64_t H);

}  // namespace lrnn::ops
