#include <torch/library.h>

#include "kernels/slstm.h"
#include "ops/parallel.h"
#include "ops/rows.h"
#include "ops/slstm/inner.h"
#include "ops/torch.h"

// The CPU and Meta kernels of the inner ops: tensors in, pointers out.
namespace lrnn::ops {
namespace {

using torch::Tensor;

kernels::Rows gate_rows(const Tensor& x) {  // [B,T,H,4,D]
  return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(3), x.stride(2)};
}
// Inputs in the form the kernel reads, kept alive together.
struct SlstmTensors {
  Tensor wx, R, bias, state, cu_seqlens;
  SlstmTensors(const Tensor& wx_, const Tensor& R_, const MaybeTensor& bias_,
               const MaybeTensor& state_, const MaybeTensor& cu_seqlens_)
      : wx(with_rows(wx_)) {
    const auto wide = wide_type(wx);
    R = R_.to(wide).contiguous();
    if (bias_) bias = bias_->to(wide).contiguous();
    if (state_) state = state_->to(wide).contiguous();
    if (cu_seqlens_) cu_seqlens = cu_seqlens_->to(torch::kCPU).contiguous();
  }

  void fill(kernels::SlstmInputs& p) const {
    p.type = kernel_type(wx);
    p.B = p.S = wx.size(0), p.T = wx.size(1), p.H = wx.size(2), p.D = wx.size(4);
    p.wx = gate_rows(wx), p.R = R.const_data_ptr();
    if (bias.defined()) p.bias = bias.const_data_ptr();
    if (state.defined()) p.state = state.const_data_ptr();
    if (!cu_seqlens.defined()) return;
    p.cu_seqlens = checked_bounds("slstm", cu_seqlens, p.T), p.S = cu_seqlens.size(0) - 1;
  }
};

SlstmForwardResult slstm_empty(const Tensor& wx, const MaybeTensor& cu_seqlens, bool save) {
  const auto x = wx.sym_sizes();
  const c10::SymInt S = cu_seqlens ? cu_seqlens->sym_size(0) - 1 : x[0];
  const auto wide = wx.options().dtype(wide_type(wx));
  return {at::empty_symint({x[0], x[1], x[2], x[4]}, wx.options()),
          at::empty_symint({S, 4, x[2], x[4]}, wide),
          save ? at::empty_symint({x[0], x[2], x[1], 4, x[4]}, wide) : at::empty({0}, wide)};
}

SlstmForwardResult slstm_forward_meta(const Tensor& wx, const Tensor&, const MaybeTensor&,
                                      const MaybeTensor&, const MaybeTensor& cu_seqlens,
                                      bool save) {
  return slstm_empty(wx, cu_seqlens, save);
}

SlstmBackwardResult slstm_backward_meta(const MaybeTensor&, const MaybeTensor&, const Tensor& wx,
                                        const Tensor& R, const MaybeTensor& bias,
                                        const MaybeTensor& state, const Tensor&,
                                        const MaybeTensor&) {
  const auto empty = [&](const Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); };
  const Tensor none = at::empty({0}, R.options());
  return {empty(wx), empty(R), bias ? empty(*bias) : none, state ? empty(*state) : none};
}

SlstmForwardResult slstm_forward_cpu(const Tensor& wx, const Tensor& R, const MaybeTensor& bias,
                                     const MaybeTensor& state, const MaybeTensor& cu_seqlens,
                                     bool save) {
  const SlstmTensors in(wx, R, bias, state, cu_seqlens);
  kernels::SlstmForward p;
  in.fill(p);
  SlstmForwardResult out = slstm_empty(in.wx, cu_seqlens, save);
  auto& [h, final_state, steps] = out;
  p.h = kernel_rows(h), p.final_state = final_state.data_ptr();
  if (save) p.steps = steps.data_ptr();
  kernels::slstm_forward(p, parallel());
  return out;
}

SlstmBackwardResult slstm_backward_cpu(const MaybeTensor& dh, const MaybeTensor& d_final_state,
                                       const Tensor& wx, const Tensor& R, const MaybeTensor& bias,
                                       const MaybeTensor& state, const Tensor& steps,
                                       const MaybeTensor& cu_seqlens) {
  const SlstmTensors in(wx, R, bias, state, cu_seqlens);
  kernels::SlstmBackward p;
  in.fill(p);
  const auto wide = in.R.options();
  Tensor dh_rows, d_final;
  if (dh) dh_rows = with_rows(dh->to(wx.scalar_type())), p.dh = kernel_rows(dh_rows);
  if (d_final_state) {
    d_final = d_final_state->to(in.R.scalar_type()).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.steps = steps.const_data_ptr();
  const int64_t groups = kernels::slstm_groups(p.S);
  Tensor dwx = at::empty(wx.sizes(), wx.options()),
         dR = at::empty({groups, p.H, p.D, 4, p.D}, wide),
         dbias = at::empty({bias ? groups : 0, p.H, 4, p.D}, wide),
         dstate = at::empty({state ? p.S : 0, 4, p.H, p.D}, wide);
  p.dwx = gate_rows(dwx), p.dR = dR.data_ptr();
  if (bias) p.dbias = dbias.data_ptr();
  if (state) p.dstate = dstate.data_ptr();
  kernels::slstm_backward(p, parallel());
  const auto total = [&](const Tensor& partial, const Tensor& like) {
    return add_up(partial.view({groups, -1})).view(like.sizes()).to(like.scalar_type());
  };
  return {dwx, total(dR, R), bias ? total(dbias, *bias) : dbias, dstate};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("slstm_forward", slstm_forward_cpu);
  m.impl("slstm_backward", slstm_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("slstm_forward", slstm_forward_meta);
  m.impl("slstm_backward", slstm_backward_meta);
}

}  // namespace lrnn::ops
