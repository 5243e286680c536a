#include <torch/library.h>

#include "kernels/selective_scan.h"
#include "ops/parallel.h"
#include "ops/rows.h"
#include "ops/selective_scan_inner.h"
#include "ops/torch.h"

// The CPU and Meta kernels of the inner ops: tensors in, pointers out.
namespace lrnn::ops {
namespace {

using torch::Tensor;

// Inputs in the form the kernel reads, kept alive together.
struct ScanInputs {
  Tensor u, delta, A, B, C, D, z, delta_bias, state, cu_seqlens;

  void fill(kernels::SelectiveScanInputs& p, bool softplus, bool negative) {
    for (Tensor* x : {&u, &delta, &B, &C, &z})
      if (x->defined()) *x = with_rows(*x);
    for (Tensor* x : {&A, &D, &delta_bias, &state})
      if (x->defined()) *x = x->contiguous();
    p.type = kernel_type(u);
    p.batch = u.size(0), p.T = u.size(1), p.D = u.size(2), p.N = A.size(1), p.S = p.batch;
    p.softplus = softplus, p.negative = negative;
    p.u = kernel_rows(u), p.delta = kernel_rows(delta), p.B = kernel_rows(B);
    if (C.defined()) p.C = kernel_rows(C);
    if (z.defined()) p.z = kernel_rows(z);
    p.A = A.const_data_ptr();
    if (D.defined()) p.skip = D.const_data_ptr();
    if (delta_bias.defined()) p.delta_bias = delta_bias.const_data_ptr();
    if (state.defined()) p.state = state.const_data_ptr();
    if (!cu_seqlens.defined()) return;
    cu_seqlens = cu_seqlens.to(torch::kCPU).contiguous();
    p.S = cu_seqlens.size(0) - 1;
    p.cu_seqlens = checked_bounds("selective_scan", cu_seqlens, p.T);
  }
};

ScanForwardResult scan_forward_results(const Tensor& u, const Tensor& A, bool outputs,
                                       const MaybeTensor& cu_seqlens, bool save) {
  const auto wide = u.options().dtype(wide_type(u));
  const c10::SymInt batch = u.sym_size(0), D = u.sym_size(2), N = A.sym_size(1),
                    S = cu_seqlens ? cu_seqlens->sym_size(0) - 1 : batch;
  return {outputs ? at::empty_symint(u.sym_sizes(), u.options()) : none(u),
          at::empty_symint({S, D, N}, wide),
          save ? at::empty_symint({batch, u.sym_size(1) / kernels::kSelectiveScanChunk, N, D}, wide)
               : at::empty({0}, wide)};
}

ScanForwardResult scan_forward_meta(const Tensor& u, const Tensor&, const Tensor& A, const Tensor&,
                                    const MaybeTensor& C, const MaybeTensor&, const MaybeTensor&,
                                    const MaybeTensor&, const MaybeTensor&, bool, bool,
                                    const MaybeTensor& cu_seqlens, bool save) {
  return scan_forward_results(u, A, C.has_value(), cu_seqlens, save);
}

ScanForwardResult scan_forward_cpu(const Tensor& u, const Tensor& delta, const Tensor& A,
                                   const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                   const MaybeTensor& z, const MaybeTensor& delta_bias,
                                   const MaybeTensor& state, bool softplus, bool negative,
                                   const MaybeTensor& cu_seqlens, bool save) {
  ScanInputs in{u,
                delta,
                A,
                B,
                or_undefined(C),
                or_undefined(D),
                or_undefined(z),
                or_undefined(delta_bias),
                or_undefined(state),
                or_undefined(cu_seqlens)};
  kernels::SelectiveScanForward p;
  in.fill(p, softplus, negative);
  ScanForwardResult out = scan_forward_results(u, A, C.has_value(), cu_seqlens, save);
  auto& [y, final_state, states] = out;
  if (C) p.y = kernel_rows(y);
  p.final_state = final_state.data_ptr();
  if (save && states.numel() > 0) p.states = states.data_ptr();
  kernels::selective_scan_forward(p, parallel());
  return out;
}

ScanBackwardResult scan_backward_meta(const MaybeTensor& dy, const MaybeTensor&, const Tensor& u,
                                      const Tensor& delta, const Tensor& A, const Tensor& B,
                                      const MaybeTensor& C, const MaybeTensor& D,
                                      const MaybeTensor& z, const MaybeTensor& delta_bias,
                                      const MaybeTensor& state, const Tensor&, bool, bool,
                                      const MaybeTensor&) {
  const bool outputs = C.has_value() && dy.has_value();
  const auto like = [&](bool wanted, const Tensor& x) {
    return wanted ? at::empty_symint(x.sym_sizes(), x.options()) : none(u);
  };
  return {like(true, u),
          like(true, delta),
          like(true, A),
          like(true, B),
          like(outputs, or_undefined(C)),
          like(outputs && D, or_undefined(D)),
          like(outputs && z, or_undefined(z)),
          like(delta_bias.has_value(), or_undefined(delta_bias)),
          like(state.has_value(), or_undefined(state))};
}

ScanBackwardResult scan_backward_cpu(const MaybeTensor& dy, const MaybeTensor& d_final_state,
                                     const Tensor& u, const Tensor& delta, const Tensor& A,
                                     const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                     const MaybeTensor& z, const MaybeTensor& delta_bias,
                                     const MaybeTensor& state, const Tensor& states, bool softplus,
                                     bool negative, const MaybeTensor& cu_seqlens) {
  const bool outputs = C.has_value() && dy.has_value();
  const auto shown = [&](const MaybeTensor& x) { return outputs ? or_undefined(x) : Tensor(); };
  ScanInputs in{u,
                delta,
                A,
                B,
                shown(C),
                shown(D),
                shown(z),
                or_undefined(delta_bias),
                or_undefined(state),
                or_undefined(cu_seqlens)};
  kernels::SelectiveScanBackward p;
  in.fill(p, softplus, negative);
  const auto wide = A.options();
  const auto type = u.scalar_type();
  const int64_t groups = kernels::selective_scan_groups(p.D, p.type);
  const Tensor du = at::empty_like(u, torch::MemoryFormat::Contiguous), ddelta = at::empty_like(du),
               dz = z && outputs ? at::empty_like(du) : none(u);
  const Tensor dB = at::empty({groups, p.batch * p.T * p.N}, wide),
               dC = outputs ? at::empty_like(dB) : none(u);
  const Tensor dA = at::empty({p.S, p.D * p.N}, wide), dskip = at::empty({p.S, p.D}, wide),
               dbias = at::empty({p.S, p.D}, wide),
               dstate = state ? at::empty({p.S, p.D, p.N}, wide) : none(u);
  Tensor dy_rows, d_final;
  if (outputs) {
    dy_rows = with_rows(dy->to(type));
    p.dy = kernel_rows(dy_rows);
    p.dC = dC.data_ptr();
    if (z) p.dz = kernel_rows(dz);
  }
  if (d_final_state) {
    d_final = d_final_state->to(wide_type(u)).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.states = states.const_data_ptr();
  p.du = kernel_rows(du), p.ddelta = kernel_rows(ddelta);
  p.dB = dB.data_ptr(), p.dA = dA.data_ptr();
  p.dskip = dskip.data_ptr(), p.dbias = dbias.data_ptr();
  if (state) p.dstate = dstate.data_ptr();
  kernels::selective_scan_backward(p, parallel());
  const auto total = [&](const Tensor& partial) {
    return partial.size(0) > 0 ? add_up(partial) : at::zeros({partial.size(1)}, wide);
  };
  return {du,
          ddelta,
          total(dA).view(A.sizes()),
          total(dB).view(B.sizes()).to(type),
          outputs ? total(dC).view(B.sizes()).to(type) : none(u),
          outputs && D ? total(dskip) : none(u),
          dz,
          delta_bias ? total(dbias) : none(u),
          dstate};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("selective_scan_forward", scan_forward_cpu);
  m.impl("selective_scan_backward", scan_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("selective_scan_forward", scan_forward_meta);
  m.impl("selective_scan_backward", scan_backward_meta);
}

}  // namespace lrnn::ops
