#pragma once
#include "kernels/titans.h"
#include "ops/fill_heads.h"
#include "ops/titans/titans.h"

// Tensors in, pointers out: what the back ends of Titans' memory share.
namespace lrnn::ops {

inline void fill(kernels::TitansInputs& p, const Titans& in) {
  fill_heads(p, in);
  p.K = in.k.size(3), p.V = in.v.size(3), p.scale = in.scale;
  p.theta = in.theta.const_data_ptr(), p.eta = in.eta.const_data_ptr();
  p.alpha = in.alpha.const_data_ptr();
  p.state = data_or_null(in.state), p.momentum = data_or_null(in.momentum);
}

inline void fill_results(kernels::TitansForward& p, const TitansResult& out,
                         const std::vector<Tensor>& kept) {
  if (out.o.defined()) p.o = kernel_rows(out.o);
  p.final_state = out.state.data_ptr(), p.final_momentum = out.momentum.data_ptr();
  if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
}

inline void fill_gradients(kernels::TitansBackward& p, const Backward<Titans>& b,
                           const Titans& grads) {
  fill_head_gradients(p, b.d.o, grads);
  p.d_final_state = data_or_null(b.d.state), p.d_final_momentum = data_or_null(b.d.momentum);
  p.states = b.kept[0].const_data_ptr();
  p.dtheta = grads.theta.data_ptr(), p.deta = grads.eta.data_ptr();
  p.dalpha = grads.alpha.data_ptr();
  p.dstate = data_or_null(grads.state), p.dmomentum = data_or_null(grads.momentum);
}

}  // namespace lrnn::ops
