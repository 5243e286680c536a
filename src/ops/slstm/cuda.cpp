#include "kernels/cuda/slstm/slstm.h"

#include "ops/cuda/stream.h"
#include "ops/slstm/inner.h"
#include "ops/torch.h"

// The CUDA kernels of the sLSTM cell: tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

// Inputs in the form the kernel reads, kept alive together.
struct SlstmOnDevice {
  Tensor wx, R, bias, state, cu_seqlens;
  SlstmOnDevice(const Tensor& wx_, const Tensor& R_, const MaybeTensor& bias_,
                const MaybeTensor& state_, const MaybeTensor& cu_seqlens_)
      : wx(ops::with_rows(wx_)), cu_seqlens(checked_offsets("slstm", cu_seqlens_, wx_)) {
    const auto wide = wide_type(wx);
    R = R_.to(wide).contiguous();
    if (bias_) bias = bias_->to(wide).contiguous();
    if (state_) state = state_->to(wide).contiguous();
  }

  void fill(kernels::SlstmInputs& p) const {
    p.type = kernel_type(wx);
    p.B = p.S = wx.size(0), p.T = wx.size(1), p.H = wx.size(2), p.D = wx.size(4);
    p.wx = {wx.data_ptr(), wx.stride(0), wx.stride(1), wx.stride(3), wx.stride(2)};
    p.R = R.const_data_ptr();
    if (bias.defined()) p.bias = bias.const_data_ptr();
    if (state.defined()) p.state = state.const_data_ptr();
    if (!cu_seqlens.defined()) return;
    p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }
};

SlstmForwardResult slstm_forward_cuda(const Tensor& wx, const Tensor& R, const MaybeTensor& bias,
                                      const MaybeTensor& state, const MaybeTensor& cu_seqlens,
                                      bool save) {
  const OnDevice on(wx);
  const SlstmOnDevice in(wx, R, bias, state, cu_seqlens);
  kernels::SlstmForward p;
  in.fill(p);
  const auto wide = in.R.options();
  Tensor h = at::empty({p.B, p.T, p.H, p.D}, wx.options()),
         final_state = at::empty({p.S, 4, p.H, p.D}, wide),
         steps = save ? at::empty({p.B, p.H, p.T, 4, p.D}, wide) : at::empty({0}, wide);
  p.h = kernel_rows(h), p.final_state = final_state.data_ptr();
  if (save) p.steps = steps.data_ptr();
  kernels::cuda::slstm_forward(p, on.stream());
  return {h, final_state, steps};
}

SlstmBackwardResult slstm_backward_cuda(const MaybeTensor& dh, const MaybeTensor& d_final_state,
                                        const Tensor& wx, const Tensor& R, const MaybeTensor& bias,
                                        const MaybeTensor& state, const Tensor& steps,
                                        const MaybeTensor& cu_seqlens) {
  const OnDevice on(wx);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const SlstmOnDevice in(wx, R, bias, state, cu_seqlens);
  kernels::SlstmBackward p;
  in.fill(p);
  const auto wide = in.R.options();
  const int64_t H = p.H, D = p.D, rows = p.B * p.T;
  Tensor dh_rows, d_final;
  if (dh) dh_rows = ops::with_rows(dh->to(wx.scalar_type())), p.dh = kernel_rows(dh_rows);
  if (d_final_state) {
    d_final = d_final_state->to(in.R.scalar_type()).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.steps = steps.const_data_ptr();
  Tensor previous = at::zeros({H, rows, D}, wide),
         dstate = at::empty({state ? p.S : 0, 4, H, D}, wide);
  if (state) p.dstate = dstate.data_ptr();
  kernels::cuda::slstm_previous(p, steps.const_data_ptr(), previous.data_ptr(), on.stream());
  const Tensor matrix = in.R.view({H, D, 4 * D});
  Tensor from_input =
      in.wx.permute({2, 0, 1, 3, 4}).to(in.R.scalar_type()).reshape({H, rows, 4 * D});
  if (bias) from_input = from_input + in.bias.view({H, 1, 4 * D});
  const Tensor gates = at::baddbmm(from_input, previous, matrix),
               transposed = matrix.transpose(1, 2).contiguous();
  kernels::cuda::slstm_backward(p, transposed.const_data_ptr(), gates.data_ptr(), on.stream());
  return {
      gates.view({H, p.B, p.T, 4, D}).permute({1, 2, 0, 3, 4}).to(wx.scalar_type()).contiguous(),
      at::bmm(previous.transpose(1, 2), gates).view({H, D, 4, D}).to(R.scalar_type()),
      bias ? gates.sum(1).view({H, 4, D}).to(bias->scalar_type()) : at::empty({0}, wide), dstate};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("slstm_forward", slstm_forward_cuda);
  m.impl("slstm_backward", slstm_backward_cuda);
}

}  // namespace lrnn::ops::cuda
