#pragma once
#include "kernels/mlstm.h"
#include "ops/by_sequence.h"
#include "ops/mlstm/mlstm.h"

// Tensors in, pointers out: what the back ends of the mLSTM cell share.
namespace lrnn::ops {

inline void fill(kernels::MlstmInputs& p, const Mlstm& in) {
  p.type = kernel_type(in.q);
  p.B = p.S = in.q.size(0), p.T = in.q.size(1), p.H = in.q.size(2), p.K = in.q.size(3);
  p.V = in.v.size(3);
  p.scale = scale_of(in.scale, in.k), p.eps = in.eps;
  p.q = kernel_rows(in.q), p.k = kernel_rows(in.k), p.v = kernel_rows(in.v);
  p.i = in.i.const_data_ptr(), p.f = in.f.const_data_ptr();
  p.C = data_or_null(in.state.C), p.n = data_or_null(in.state.n), p.m = data_or_null(in.state.m);
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

inline void fill_results(kernels::MlstmForward& p, const MlstmResult& out) {
  p.h = kernel_rows(out.h);
  p.final_C = out.state.C.data_ptr(), p.final_n = out.state.n.data_ptr();
  p.final_m = out.state.m.data_ptr();
}

inline void fill_gradients(kernels::MlstmBackward& p, const Backward<Mlstm>& b,
                           const Mlstm& grads) {
  if (b.d.h.defined()) p.dh = kernel_rows(b.d.h);
  p.dfinal_C = data_or_null(b.d.state.C), p.dfinal_n = data_or_null(b.d.state.n);
  p.dfinal_m = data_or_null(b.d.state.m);
  p.final_C = b.out.state.C.const_data_ptr(), p.final_n = b.out.state.n.const_data_ptr();
  p.states = b.kept[0].const_data_ptr();
  p.dq = kernel_rows(grads.q), p.dk = kernel_rows(grads.k), p.dv = kernel_rows(grads.v);
  p.di = grads.i.data_ptr(), p.df = grads.f.data_ptr();
  p.dC = data_or_null(grads.state.C), p.dn = data_or_null(grads.state.n);
  p.dm = data_or_null(grads.state.m);
}

}  // namespace lrnn::ops
