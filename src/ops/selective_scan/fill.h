#pragma once
#include "kernels/selective_scan.h"
#include "ops/declare.h"
#include "ops/selective_scan/selective_scan.h"

// Tensors in, pointers out: what the back ends of the selective scan share.
namespace lrnn::ops {

inline void fill(kernels::SelectiveScanInputs& p, const SelectiveScan& in) {
  p.type = kernel_type(in.u);
  p.batch = p.S = in.u.size(0), p.T = in.u.size(1), p.D = in.u.size(2), p.N = in.A.size(1);
  p.softplus = in.softplus, p.negative = in.negative;
  p.u = kernel_rows(in.u), p.delta = kernel_rows(in.delta), p.B = kernel_rows(in.B);
  if (in.C.defined()) p.C = kernel_rows(in.C);
  if (in.z.defined()) p.z = kernel_rows(in.z);
  p.A = in.A.const_data_ptr(), p.skip = data_or_null(in.D);
  p.delta_bias = data_or_null(in.delta_bias), p.state = data_or_null(in.state);
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

// Backward of one back end, which says
//   groups(p)      how many partial sums of dB and dC it leaves,
//   run(p)         the kernel,
//   total(partial) the sum over the first dimension.
template <class Device>
void scan_backward(const Device& device, const Backward<SelectiveScan>& b, SelectiveScan& grads) {
  SelectiveScan in = b.in;
  const bool outputs = grads.C.defined();
  if (!outputs) in.C = in.D = in.z = Tensor();
  kernels::SelectiveScanBackward p;
  fill(p, in);
  const auto wide = in.A.options();
  const Tensor dA = at::empty({p.S, p.D, p.N}, wide), dskip = at::empty({p.S, p.D}, wide),
               dbias = at::empty({p.S, p.D}, wide),
               dB = at::empty({device.groups(p), p.batch, p.T, p.N}, wide),
               dC = outputs ? at::empty_like(dB) : Tensor();
  if (outputs) p.dy = kernel_rows(b.d.y), p.dC = dC.data_ptr();
  if (grads.z.defined()) p.dz = kernel_rows(grads.z);
  p.d_final_state = data_or_null(b.d.state);
  p.states = b.kept[0].const_data_ptr();
  p.du = kernel_rows(grads.u), p.ddelta = kernel_rows(grads.delta);
  p.dB = dB.data_ptr(), p.dA = dA.data_ptr();
  p.dskip = dskip.data_ptr(), p.dbias = dbias.data_ptr();
  p.dstate = data_or_null(grads.state);
  device.run(p);
  grads.A = device.total(dA), grads.B = device.total(dB);
  if (outputs) grads.C = device.total(dC);
  if (grads.D.defined()) grads.D = device.total(dskip);
  if (grads.delta_bias.defined()) grads.delta_bias = device.total(dbias);
}

}  // namespace lrnn::ops
