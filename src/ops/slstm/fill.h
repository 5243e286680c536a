#pragma once
#include "kernels/slstm.h"
#include "ops/declare.h"
#include "ops/slstm/slstm.h"

// Tensors in, pointers out: what the back ends of the sLSTM cell share.
namespace lrnn::ops {

inline kernels::Rows gate_rows(const Tensor& x) {  // [B,T,H,4,D]
  return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(3), x.stride(2)};
}

inline void fill(kernels::SlstmInputs& p, const Slstm& in) {
  p.type = kernel_type(in.wx);
  p.B = p.S = in.wx.size(0), p.T = in.wx.size(1), p.H = in.wx.size(2), p.D = in.wx.size(4);
  p.wx = gate_rows(in.wx), p.R = in.R.const_data_ptr();
  p.bias = data_or_null(in.bias), p.state = data_or_null(in.state);
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

// The state after every step, which every device keeps.
inline std::vector<Tensor> kept_steps(const Slstm& in) {
  const auto x = in.wx.sym_sizes();
  return {at::empty_symint({x[0], x[2], x[1], 4, x[4]}, options_of(in.wx, Kind::kWide))};
}

inline void fill_results(kernels::SlstmForward& p, const SlstmResult& out,
                         const std::vector<Tensor>& kept) {
  p.h = kernel_rows(out.h), p.final_state = out.state.data_ptr();
  if (!kept.empty()) p.steps = kept[0].data_ptr();
}

inline void fill_gradients(kernels::SlstmBackward& p, const Backward<Slstm>& b,
                           const Slstm& grads) {
  if (b.d.h.defined()) p.dh = kernel_rows(b.d.h);
  p.d_final_state = data_or_null(b.d.state);
  p.steps = b.kept[0].const_data_ptr();
  p.dstate = data_or_null(grads.state);
}

}  // namespace lrnn::ops
