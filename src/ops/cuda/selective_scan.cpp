#include "kernels/cuda/selective_scan.h"

#include "ops/cuda/stream.h"
#include "ops/selective_scan_inner.h"
#include "ops/torch.h"

// The CUDA kernels of the selective scan: tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

// Inputs in the form the kernel reads, kept alive together.
struct ScanTensors {
  Tensor u, delta, A, B, C, D, z, delta_bias, state, cu_seqlens;

  void fill(kernels::SelectiveScanInputs& p, bool softplus, bool negative) {
    for (Tensor* x : {&u, &delta, &B, &C, &z})
      if (x->defined()) *x = ops::with_rows(*x);
    for (Tensor* x : {&A, &D, &delta_bias, &state})
      if (x->defined()) *x = x->contiguous();
    p.type = kernel_type(u);
    p.batch = u.size(0), p.T = u.size(1), p.D = u.size(2), p.N = A.size(1), p.S = p.batch;
    check(p.N <= kernels::cuda::kMostScanStates, "[selective_scan] the GPU kernels keep up to ",
          kernels::cuda::kMostScanStates, " numbers of state per channel, got ", p.N);
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

ScanForwardResult scan_forward(const Tensor& u, const Tensor& delta, const Tensor& A,
                               const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                               const MaybeTensor& z, const MaybeTensor& delta_bias,
                               const MaybeTensor& state, bool softplus, bool negative,
                               const MaybeTensor& cu_seqlens, bool save) {
  const OnDevice on(u);
  ScanTensors in{u,
                 delta,
                 A,
                 B,
                 or_undefined(C),
                 or_undefined(D),
                 or_undefined(z),
                 or_undefined(delta_bias),
                 or_undefined(state),
                 checked_offsets("selective_scan", cu_seqlens, u)};
  kernels::SelectiveScanForward p;
  in.fill(p, softplus, negative);
  const auto wide = u.options().dtype(wide_type(u));
  Tensor y = C ? at::empty(u.sizes(), u.options()) : ops::none(u),
         final_state = at::empty({p.S, p.D, p.N}, wide), states = at::empty({0}, wide);
  if (save)
    states = at::empty({kernels::cuda::scan_kept(p), p.D, kernels::cuda::scan_padded(p.N)}, wide);
  if (C) p.y = kernel_rows(y);
  p.final_state = final_state.data_ptr();
  if (states.numel() > 0) p.states = states.data_ptr();
  kernels::cuda::scan_forward(p, on.stream());
  return {y, final_state, states};
}

ScanBackwardResult scan_backward(const MaybeTensor& dy, const MaybeTensor& d_final_state,
                                 const Tensor& u, const Tensor& delta, const Tensor& A,
                                 const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                 const MaybeTensor& z, const MaybeTensor& delta_bias,
                                 const MaybeTensor& state, const Tensor& states, bool softplus,
                                 bool negative, const MaybeTensor& cu_seqlens) {
  const OnDevice on(u);
  const bool outputs = C.has_value() && dy.has_value();
  const auto shown = [&](const MaybeTensor& x) { return outputs ? or_undefined(x) : Tensor(); };
  ScanTensors in{u,
                 delta,
                 A,
                 B,
                 shown(C),
                 shown(D),
                 shown(z),
                 or_undefined(delta_bias),
                 or_undefined(state),
                 checked_offsets("selective_scan", cu_seqlens, u)};
  kernels::SelectiveScanBackward p;
  in.fill(p, softplus, negative);
  const auto wide = A.options();
  const auto type = u.scalar_type();
  const int64_t groups = kernels::cuda::scan_groups(p);
  const auto partial = [&](bool wanted) {
    return wanted ? at::empty({groups, p.batch, p.T, p.N}, wide) : Tensor();
  };
  const Tensor du = at::empty(u.sizes(), u.options()), ddelta = at::empty_like(du),
               dz = z && outputs ? at::empty_like(du) : ops::none(u);
  const Tensor dB = partial(true), dC = partial(outputs);
  const Tensor dA = at::empty({p.S, p.D, p.N}, wide), dskip = at::empty({p.S, p.D}, wide),
               dbias = at::empty({p.S, p.D}, wide),
               dstate = state ? at::empty({p.S, p.D, p.N}, wide) : ops::none(u);
  Tensor dy_rows, d_final;
  if (outputs) {
    dy_rows = ops::with_rows(dy->to(type));
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
  kernels::cuda::scan_backward(p, on.stream());
  return {du,
          ddelta,
          dA.sum(0),
          dB.sum(0).to(type),
          outputs ? dC.sum(0).to(type) : ops::none(u),
          outputs && D ? dskip.sum(0) : ops::none(u),
          dz,
          delta_bias ? dbias.sum(0) : ops::none(u),
          dstate};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("selective_scan_forward", scan_forward);
  m.impl("selective_scan_backward", scan_backward);
}

}  // namespace lrnn::ops::cuda
