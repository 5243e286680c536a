#include <torch/library.h>

#include "kernels/delta_product.h"
#include "ops/delta_product/inner.h"
#include "ops/parallel.h"
#include "ops/torch.h"

// The CPU and Meta kernels of the inner ops: tensors in, pointers out.
namespace lrnn::ops {
namespace {

using torch::Tensor;

// Inputs in the form the kernel reads, kept alive together.
struct Inputs {
  Tensor q, k, beta, log_gate, state, cu_seqlens;

  Inputs(const MaybeTensor& q_, const Tensor& k_, const Tensor& beta_, const MaybeTensor& log_gate_,
         const MaybeTensor& state_, const MaybeTensor& cu_seqlens_)
      : k(with_rows(k_)) {
    const auto wide = wide_type(k);
    if (q_) q = with_rows(*q_);
    beta = beta_.to(wide).contiguous();
    if (log_gate_) log_gate = log_gate_->to(wide).contiguous();
    if (state_) state = state_->to(wide).contiguous();
    if (cu_seqlens_) cu_seqlens = cu_seqlens_->to(torch::kCPU).contiguous();
  }

  void fill(kernels::DeltaProductInputs& p, int64_t V, double scale) const {
    p.type = kernel_type(k);
    p.B = k.size(0), p.T = k.size(1), p.N = k.size(2), p.H = k.size(3), p.K = k.size(4), p.V = V;
    p.S = p.B;
    p.scale = scale;
    if (q.defined()) p.q = kernel_rows(q);
    p.k = kernel_rows(k);
    p.beta = beta.const_data_ptr();
    if (log_gate.defined()) p.log_gate = log_gate.const_data_ptr();
    if (state.defined()) p.state = state.const_data_ptr();
    if (!cu_seqlens.defined()) return;
    p.S = cu_seqlens.size(0) - 1;
    p.cu_seqlens = checked_bounds("delta_product", cu_seqlens, p.T);
  }
};

// Shapes of the results, for sizes known or symbolic.
struct Results {
  c10::SymInt B, T, N, H, K, V, S, slots;
  Results(const Tensor& k, const c10::SymInt& V_, const MaybeTensor& cu_seqlens)
      : B(k.sym_size(0)),
        T(k.sym_size(1)),
        N(k.sym_size(2)),
        H(k.sym_size(3)),
        K(k.sym_size(4)),
        V(V_),
        S(cu_seqlens ? cu_seqlens->sym_size(0) - 1 : B),
        slots(T / kernels::delta_product_segment(N.guard_int(__FILE__, __LINE__))) {}

  ForwardResult forward(const Tensor& k, bool has_q, bool save) const {
    const auto wide = k.options().dtype(wide_type(k));
    return {has_q ? at::empty_symint({B, T, H, V}, k.options()) : none(k),
            at::empty_symint({S, H, K, V}, wide),
            save ? at::empty_symint({B, H, T, N, V}, wide) : at::empty({0}, wide),
            save ? at::empty_symint({B, H, slots, K, V}, wide) : at::empty({0}, wide)};
  }
  BackwardResult backward(const Tensor& k, const Tensor& beta, bool has_q,
                          const MaybeTensor& log_gate, bool has_state) const {
    return {has_q ? at::empty_symint({B, T, H, K}, k.options()) : none(k),
            at::empty_symint({B, T, N, H, K}, k.options()),
            at::empty_symint({B, T, N, H, V}, k.options()),
            at::empty_symint({B, T, N, H}, beta.options()),
            log_gate ? at::empty_symint({B, T, H}, log_gate->options()) : none(k),
            has_state ? at::empty_symint({S, H, K, V}, k.options().dtype(wide_type(k))) : none(k)};
  }
};

ForwardResult forward_meta(const MaybeTensor& q, const Tensor& k, const Tensor& v, const Tensor&,
                           const MaybeTensor&, const MaybeTensor&, double,
                           const MaybeTensor& cu_seqlens, c10::string_view, bool save) {
  return Results(k, v.sym_size(4), cu_seqlens).forward(k, q.has_value(), save);
}

BackwardResult backward_meta(const MaybeTensor& d_o, const MaybeTensor&, const MaybeTensor& q,
                             const Tensor& k, const Tensor& beta, const MaybeTensor& log_gate,
                             const MaybeTensor& state, const Tensor& error, const Tensor&, double,
                             const MaybeTensor& cu_seqlens, c10::string_view) {
  return Results(k, error.sym_size(4), cu_seqlens)
      .backward(k, beta, q.has_value() && d_o.has_value(), log_gate, state.has_value());
}

// Exact, whatever precision is asked for.
ForwardResult forward_cpu(const MaybeTensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& beta, const MaybeTensor& log_gate, const MaybeTensor& state,
                          double scale, const MaybeTensor& cu_seqlens, c10::string_view,
                          bool save) {
  const Inputs in(q, k, beta, log_gate, state, cu_seqlens);
  kernels::DeltaProductForward p;
  in.fill(p, v.size(4), scale);
  const Tensor v_rows = with_rows(v);
  p.v = kernel_rows(v_rows);
  ForwardResult out = Results(k, v.sym_size(4), cu_seqlens).forward(k, q.has_value(), save);
  auto& [o, final_state, error, states] = out;
  if (q) p.o = kernel_rows(o);
  p.final_state = final_state.data_ptr();
  if (save) p.error = error.data_ptr();
  if (save && states.numel() > 0) p.states = states.data_ptr();
  kernels::delta_product_forward(p, parallel());
  return out;
}

BackwardResult backward_cpu(const MaybeTensor& d_o, const MaybeTensor& d_final_state,
                            const MaybeTensor& q, const Tensor& k, const Tensor& beta,
                            const MaybeTensor& log_gate, const MaybeTensor& state,
                            const Tensor& error, const Tensor& states, double scale,
                            const MaybeTensor& cu_seqlens, c10::string_view) {
  const bool has_q = q.has_value() && d_o.has_value();
  const Inputs in(has_q ? q : std::nullopt, k, beta, log_gate, state, cu_seqlens);
  kernels::DeltaProductBackward p;
  in.fill(p, error.size(4), scale);
  BackwardResult out = Results(k, error.sym_size(4), cu_seqlens)
                           .backward(k, in.beta, has_q, maybe(in.log_gate), state.has_value());
  auto& [dq, dk, dv, dbeta, dlog_gate, dstate] = out;
  Tensor d_o_rows, d_final;
  if (has_q) {
    d_o_rows = with_rows(d_o->to(k.scalar_type()));
    p.d_o = kernel_rows(d_o_rows);
    p.dq = kernel_rows(dq);
  }
  if (d_final_state) {
    d_final = d_final_state->to(wide_type(k)).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.error = error.const_data_ptr();
  p.states = states.const_data_ptr();
  p.dk = kernel_rows(dk), p.dv = kernel_rows(dv);
  p.dbeta = dbeta.data_ptr();
  if (log_gate) p.dlog_gate = dlog_gate.data_ptr();
  if (state) p.dstate = dstate.data_ptr();
  kernels::delta_product_backward(p, parallel());
  dbeta = dbeta.to(beta.scalar_type());
  if (log_gate) dlog_gate = dlog_gate.to(log_gate->scalar_type());
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("delta_product_forward", forward_cpu);
  m.impl("delta_product_backward", backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("delta_product_forward", forward_meta);
  m.impl("delta_product_backward", backward_meta);
}

}  // namespace lrnn::ops
