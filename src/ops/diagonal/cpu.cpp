#include <torch/library.h>

#include "ops/diagonal/diagonal.h"
#include "ops/parallel.h"
#include "ops/torch.h"

// The CPU and Meta kernels of the inner ops: tensors in, pointers out.
namespace lrnn::ops {
namespace {

using torch::Tensor;

DiagonalForwardResult diagonal_forward_results(const Tensor& k, const Tensor& v, bool has_q,
                                               const MaybeTensor& cu_seqlens, bool save) {
  const auto wide = k.options().dtype(wide_type(k));
  const c10::SymInt B = k.sym_size(0), T = k.sym_size(1), H = k.sym_size(2), K = k.sym_size(3),
                    V = v.sym_size(3), S = cu_seqlens ? cu_seqlens->sym_size(0) - 1 : B;
  return {has_q ? at::empty_symint({B, T, H, V}, k.options()) : none(k),
          at::empty_symint({S, H, K, V}, wide),
          save ? at::empty_symint({B, H, T / kernels::kDiagonalChunk, K, V}, wide)
               : at::empty({0}, wide)};
}

DiagonalForwardResult diagonal_forward_meta(const MaybeTensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor&, const MaybeTensor&, const MaybeTensor&,
                                            const MaybeTensor&, double, bool,
                                            const MaybeTensor& cu_seqlens, bool save) {
  return diagonal_forward_results(k, v, q.has_value(), cu_seqlens, save);
}

DiagonalForwardResult diagonal_forward_cpu(const MaybeTensor& q, const Tensor& k, const Tensor& v,
                                           const Tensor& log_decay, const MaybeTensor& kk,
                                           const MaybeTensor& rate, const MaybeTensor& state,
                                           double scale, bool negative,
                                           const MaybeTensor& cu_seqlens, bool save) {
  DiagonalTensors in{or_undefined(q),
                     k,
                     v,
                     log_decay,
                     or_undefined(kk),
                     or_undefined(rate),
                     or_undefined(state),
                     checked_offsets(diagonal_name(kk.has_value()), cu_seqlens, k)};
  kernels::DiagonalForward p;
  in.fill(p, scale, negative);
  DiagonalForwardResult out = diagonal_forward_results(k, v, q.has_value(), cu_seqlens, save);
  auto& [o, final_state, states] = out;
  if (q) p.o = kernel_rows(o);
  p.final_state = final_state.data_ptr();
  if (save && states.numel() > 0) p.states = states.data_ptr();
  kernels::diagonal_forward(p, parallel());
  return out;
}

DiagonalBackwardResult diagonal_gradients(const MaybeTensor& d_o, const MaybeTensor& q,
                                          const Tensor& k, const Tensor& v, const Tensor& log_decay,
                                          const MaybeTensor& kk, const MaybeTensor& state) {
  const auto like = [&](bool wanted, const Tensor& x) {
    return wanted ? at::empty_symint(x.sym_sizes(), x.options()) : none(k);
  };
  return {like(q && d_o, k),
          like(true, k),
          like(true, v),
          like(true, log_decay),
          like(kk.has_value(), k),
          like(kk.has_value(), k),
          like(state.has_value(), or_undefined(state))};
}

DiagonalBackwardResult diagonal_backward_meta(const MaybeTensor& d_o, const MaybeTensor&,
                                              const MaybeTensor& q, const Tensor& k,
                                              const Tensor& v, const Tensor& log_decay,
                                              const MaybeTensor& kk, const MaybeTensor&,
                                              const MaybeTensor& state, const Tensor&, double, bool,
                                              const MaybeTensor&) {
  return diagonal_gradients(d_o, q, k, v, log_decay, kk, state);
}

DiagonalBackwardResult diagonal_backward_cpu(const MaybeTensor& d_o,
                                             const MaybeTensor& d_final_state, const MaybeTensor& q,
                                             const Tensor& k, const Tensor& v,
                                             const Tensor& log_decay, const MaybeTensor& kk,
                                             const MaybeTensor& rate, const MaybeTensor& state,
                                             const Tensor& states, double scale, bool negative,
                                             const MaybeTensor& cu_seqlens) {
  const bool outputs = q.has_value() && d_o.has_value();
  DiagonalTensors in{outputs ? *q : Tensor(),
                     k,
                     v,
                     log_decay,
                     or_undefined(kk),
                     or_undefined(rate),
                     or_undefined(state),
                     checked_offsets(diagonal_name(kk.has_value()), cu_seqlens, k)};
  kernels::DiagonalBackward p;
  in.fill(p, scale, negative);
  DiagonalBackwardResult out = diagonal_gradients(d_o, q, k, v, in.log_decay, kk, state);
  auto& [dq, dk, dv, dlog_decay, dkk, drate, dstate] = out;
  Tensor d_o_rows, d_final;
  if (outputs) {
    d_o_rows = with_rows(d_o->to(k.scalar_type()));
    p.d_o = kernel_rows(d_o_rows), p.dq = kernel_rows(dq);
  }
  if (d_final_state) {
    d_final = d_final_state->to(wide_type(k)).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.states = states.const_data_ptr();
  p.dk = kernel_rows(dk), p.dv = kernel_rows(dv), p.dlog_decay = kernel_rows(dlog_decay);
  if (kk) p.dkk = kernel_rows(dkk), p.drate = kernel_rows(drate);
  if (state) p.dstate = dstate.data_ptr();
  kernels::diagonal_backward(p, parallel());
  dlog_decay = dlog_decay.to(log_decay.scalar_type());
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("diagonal_forward", diagonal_forward_cpu);
  m.impl("diagonal_backward", diagonal_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("diagonal_forward", diagonal_forward_meta);
  m.impl("diagonal_backward", diagonal_backward_meta);
}

}  // namespace lrnn::ops
