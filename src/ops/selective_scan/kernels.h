#pragma once
#include "kernels/selective_scan.h"
#include "ops/selective_scan/inner.h"
#include "ops/torch.h"

// Tensors in, pointers out: what the back ends of the selective scan share.
namespace lrnn::ops {

// Inputs in the form the kernels read, kept alive together.
struct ScanTensors {
  torch::Tensor u, delta, A, B, C, D, z, delta_bias, state, cu_seqlens;

  ScanTensors(const torch::Tensor& u_, const torch::Tensor& delta_, const torch::Tensor& A_,
              const torch::Tensor& B_, const MaybeTensor& C_, const MaybeTensor& D_,
              const MaybeTensor& z_, const MaybeTensor& delta_bias_, const MaybeTensor& state_,
              const MaybeTensor& cu_seqlens_)
      : u(u_),
        delta(delta_),
        A(A_),
        B(B_),
        C(or_undefined(C_)),
        D(or_undefined(D_)),
        z(or_undefined(z_)),
        delta_bias(or_undefined(delta_bias_)),
        state(or_undefined(state_)),
        cu_seqlens(checked_offsets("selective_scan", cu_seqlens_, u_)) {}

  void fill(kernels::SelectiveScanInputs& p, bool softplus, bool negative) {
    for (torch::Tensor* x : {&u, &delta, &B, &C, &z})
      if (x->defined()) *x = with_rows(*x);
    for (torch::Tensor* x : {&A, &D, &delta_bias, &state})
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
    p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }
};

// Backward of one back end, which says
//   groups(p)      how many partial sums of dB and dC it leaves,
//   run(p)         the kernel,
//   total(partial) the sum over the first dimension.
template <class BackEnd>
ScanBackwardResult scan_backward(const BackEnd& back_end, const MaybeTensor& dy,
                                 const MaybeTensor& d_final_state, const torch::Tensor& u,
                                 const torch::Tensor& delta, const torch::Tensor& A,
                                 const torch::Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                 const MaybeTensor& z, const MaybeTensor& delta_bias,
                                 const MaybeTensor& state, const torch::Tensor& states,
                                 bool softplus, bool negative, const MaybeTensor& cu_seqlens) {
  using torch::Tensor;
  const bool outputs = C.has_value() && dy.has_value();
  const auto shown = [&](const MaybeTensor& x) { return outputs ? x : MaybeTensor(); };
  ScanTensors in(u, delta, A, B, shown(C), shown(D), shown(z), delta_bias, state, cu_seqlens);
  kernels::SelectiveScanBackward p;
  in.fill(p, softplus, negative);
  const auto wide = A.options();
  const auto type = u.scalar_type();
  const Tensor du = at::empty(u.sizes(), u.options()), ddelta = at::empty_like(du),
               dz = z && outputs ? at::empty_like(du) : none(u);
  const Tensor dB = at::empty({back_end.groups(p), p.batch, p.T, p.N}, wide),
               dC = outputs ? at::empty_like(dB) : none(u);
  const Tensor dA = at::empty({p.S, p.D, p.N}, wide), dskip = at::empty({p.S, p.D}, wide),
               dbias = at::empty({p.S, p.D}, wide),
               dstate = state ? at::empty({p.S, p.D, p.N}, wide) : none(u);
  Tensor dy_rows, d_final;
  if (outputs) {
    dy_rows = with_rows(dy->to(type));
    p.dy = kernel_rows(dy_rows), p.dC = dC.data_ptr();
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
  back_end.run(p);
  return {du,
          ddelta,
          back_end.total(dA),
          back_end.total(dB).to(type),
          outputs ? back_end.total(dC).to(type) : none(u),
          outputs && D ? back_end.total(dskip) : none(u),
          dz,
          delta_bias ? back_end.total(dbias) : none(u),
          dstate};
}

}  // namespace lrnn::ops
