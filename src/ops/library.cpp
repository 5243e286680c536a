#include <torch/library.h>

// The ops as torch sees them. The last two are what a back end implements: forward returns what
// backward reads (the error v - S^T k of every micro-step, and the state at every segment), both
// empty when nothing is to be saved. `o` and gradients that nobody asked for are empty.
TORCH_LIBRARY(lrnn, m) {
  m.def(
      "delta_product(Tensor q, Tensor k, Tensor v, Tensor beta, Tensor? log_gate=None, "
      "Tensor? state=None, float? scale=None, *, Tensor? cu_seqlens=None) -> (Tensor o, Tensor "
      "state)");
  m.def(
      "delta_product_forward(Tensor? q, Tensor k, Tensor v, Tensor beta, Tensor? log_gate, "
      "Tensor? state, float scale, Tensor? cu_seqlens, bool save) -> (Tensor o, Tensor state, "
      "Tensor error, Tensor states)");
  m.def(
      "delta_product_backward(Tensor? d_o, Tensor? d_final_state, Tensor? q, Tensor k, Tensor "
      "beta, Tensor? log_gate, Tensor? state, Tensor error, Tensor states, float scale, Tensor? "
      "cu_seqlens) -> (Tensor dq, Tensor dk, Tensor dv, Tensor dbeta, Tensor dlog_gate, Tensor "
      "dstate)");
}
