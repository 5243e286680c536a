#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

// The ops as torch sees them. NAME_forward and NAME_backward are what a back end implements:
// forward returns what backward reads (the error v - S^T k of every micro-step, the state at every
// segment or chunk), empty when nothing is to be saved. Outputs and gradients that nobody asked for
// are empty.
TORCH_LIBRARY(lrnn, m) {
  m.def(
      "delta_product(Tensor q, Tensor k, Tensor v, Tensor beta, Tensor? log_gate=None, "
      "Tensor? state=None, float? scale=None, *, Tensor? cu_seqlens=None, str precision=\"\") -> "
      "(Tensor o, Tensor state)");
  m.def(
      "delta_product_forward(Tensor? q, Tensor k, Tensor v, Tensor beta, Tensor? log_gate, "
      "Tensor? state, float scale, Tensor? cu_seqlens, str precision, bool save) -> (Tensor o, "
      "Tensor state, "
      "Tensor error, Tensor states)");
  m.def(
      "delta_product_backward(Tensor? d_o, Tensor? d_final_state, Tensor? q, Tensor k, Tensor "
      "beta, Tensor? log_gate, Tensor? state, Tensor error, Tensor states, float scale, Tensor? "
      "cu_seqlens, str precision) -> (Tensor dq, Tensor dk, Tensor dv, Tensor dbeta, Tensor "
      "dlog_gate, Tensor "
      "dstate)");

  m.def(
      "selective_scan(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D=None, "
      "Tensor? z=None, Tensor? delta_bias=None, Tensor? state=None, bool softplus=True, "
      "bool negative=False, *, Tensor? cu_seqlens=None) -> (Tensor y, Tensor state)");
  m.def(
      "selective_scan_forward(Tensor u, Tensor delta, Tensor A, Tensor B, Tensor? C, Tensor? D, "
      "Tensor? z, Tensor? delta_bias, Tensor? state, bool softplus, bool negative, "
      "Tensor? cu_seqlens, bool save) -> (Tensor y, Tensor state, Tensor states)");
  m.def(
      "selective_scan_backward(Tensor? dy, Tensor? d_final_state, Tensor u, Tensor delta, Tensor "
      "A, Tensor B, Tensor? C, Tensor? D, Tensor? z, Tensor? delta_bias, Tensor? state, Tensor "
      "states, bool softplus, bool negative, Tensor? cu_seqlens) -> (Tensor du, Tensor ddelta, "
      "Tensor dA, Tensor dB, Tensor dC, Tensor dD, Tensor dz, Tensor ddelta_bias, Tensor dstate)");

  m.def(
      "gated_linear_attention(Tensor q, Tensor k, Tensor v, Tensor log_gate, Tensor? state=None, "
      "float? scale=None, bool negative=False, *, Tensor? cu_seqlens=None) -> (Tensor o, Tensor "
      "state)");
  m.def(
      "rwkv7(Tensor r, Tensor log_w, Tensor k, Tensor v, Tensor kk, Tensor a, Tensor? state=None, "
      "float scale=1.0, *, Tensor? cu_seqlens=None) -> (Tensor o, Tensor state)");
  m.def(
      "diagonal_forward(Tensor? q, Tensor k, Tensor v, Tensor log_decay, Tensor? kk, Tensor? rate, "
      "Tensor? state, float scale, bool negative, Tensor? cu_seqlens, bool save) -> (Tensor o, "
      "Tensor state, Tensor states)");
  m.def(
      "diagonal_backward(Tensor? d_o, Tensor? d_final_state, Tensor? q, Tensor k, Tensor v, Tensor "
      "log_decay, Tensor? kk, Tensor? rate, Tensor? state, Tensor states, float scale, bool "
      "negative, Tensor? cu_seqlens) -> (Tensor dq, Tensor dk, Tensor dv, Tensor dlog_decay, "
      "Tensor dkk, Tensor drate, Tensor dstate)");
}

// What stands between an op and its back ends is called below autograd and has no derivative. Who
// calls it by its name and asks for one, backward or forward, is told so; torch would take it for
// zero.
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) {
  for (const char* name : {"add_norm",
                           "add_norm_backward",
                           "block_gradient",
                           "block_product",
                           "delta_product_backward",
                           "delta_product_forward",
                           "diagonal_backward",
                           "diagonal_forward",
                           "few_linear",
                           "few_linear_backward",
                           "gated_mlp",
                           "gated_mlp_backward",
                           "give_rows",
                           "l2_norm_backward",
                           "mlstm_backward",
                           "mlstm_forward",
                           "rms_norm_backward",
                           "selective_scan_backward",
                           "selective_scan_forward",
                           "short_conv_backward",
                           "slstm_backward",
                           "slstm_forward",
                           "swiglu_backward",
                           "swiglu_halves_backward",
                           "take_rows",
                           "unit_conv_backward",
                           "unit_conv_forward",
                           "wide_sigmoid",
                           "wide_sigmoid_backward"})
    m.impl(name, torch::autograd::autogradNotImplementedFallback());
}
