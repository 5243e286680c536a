#pragma once
#include "kernels/titans.h"
#include "ops/declare.h"
#include "ops/titans/titans.h"

// Tensors in, pointers out: what the back ends of Titans' memory share.
namespace lrnn::ops {

inline void fill(kernels::TitansInputs& p, const Titans& in) {
  p.type = kernel_type(in.k);
  p.B = p.S = in.k.size(0), p.T = in.k.size(1), p.H = in.k.size(2), p.K = in.k.size(3);
  p.V = in.v.size(3), p.scale = in.scale;
  if (in.q.defined()) p.q = kernel_rows(in.q);
  p.k = kernel_rows(in.k), p.v = kernel_rows(in.v);
  p.theta = in.theta.const_data_ptr(), p.eta = in.eta.const_data_ptr();
  p.alpha = in.alpha.const_data_ptr();
  p.state = data_or_null(in.state), p.momentum = data_or_null(in.momentum);
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

inline void fill_results(kernels::TitansForward& p, const TitansResult& out,
                         const std::vector<Tensor>& kept) {
  if (out.o.defined()) p.o = kernel_rows(out.o);
  p.final_state = out.state.data_ptr(), p.final_momentum = out.momentum.data_ptr();
  if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
}

inline void fill_gradients(kernels::TitansBackward& p, const Backward<Titans>& b,
                           const Titans& grads) {
  if (grads.q.defined())
    p.d_o = kernel_rows(b.d.o), p.dq = kernel_rows(grads.q);
  else
    p.q = {};
  p.d_final_state = data_or_null(b.d.state), p.d_final_momentum = data_or_null(b.d.momentum);
  p.states = b.kept[0].const_data_ptr();
  p.dk = kernel_rows(grads.k), p.dv = kernel_rows(grads.v);
  p.dtheta = grads.theta.data_ptr(), p.deta = grads.eta.data_ptr();
  p.dalpha = grads.alpha.data_ptr();
  p.dstate = data_or_null(grads.state), p.dmomentum = data_or_null(grads.momentum);
}

}  // namespace lrnn::ops
