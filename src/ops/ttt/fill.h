#pragma once
#include "kernels/ttt.h"
#include "ops/fill_heads.h"
#include "ops/ttt/ttt.h"

// Tensors in, pointers out: what the back ends of TTT-Linear share.
namespace lrnn::ops {

inline void fill(kernels::TttInputs& p, const Ttt& in) {
  fill_heads(p, in);
  p.D = in.k.size(3), p.mini_batch = in.mini_batch, p.eps = in.eps;
  p.eta = in.eta.const_data_ptr();
  p.weight = in.weight.const_data_ptr(), p.bias = in.bias.const_data_ptr();
  p.W = data_or_null(in.W), p.b = data_or_null(in.b), p.position = data_or_null(in.position);
}

// The weights before every piece of a mini-batch, which every device keeps.
inline std::vector<Tensor> kept_weights(const Ttt& in) {
  const auto k = in.k.sym_sizes();
  const c10::SymInt batches = k[1] / in.mini_batch;
  const c10::SymInt slots = in.cu_seqlens.defined() ? batches + 2 * (in.cu_seqlens.sym_size(0) - 1)
                                                    : k[0] * (batches + 2);
  return {at::empty_symint({slots, k[2], k[3] + 1, k[3]}, options_of(in.k, Kind::kWide))};
}

inline void fill_results(kernels::TttForward& p, const TttResult& out,
                         const std::vector<Tensor>& kept) {
  if (out.o.defined()) p.o = kernel_rows(out.o);
  p.final_W = out.W.data_ptr(), p.final_b = out.b.data_ptr();
  p.final_position = out.position.data_ptr();
  if (!kept.empty()) p.kept = kept[0].data_ptr();
}

// `norm`: [S,H,2,D], what each sequence asks of weight and bias.
inline void fill_gradients(kernels::TttBackward& p, const Backward<Ttt>& b, const Ttt& grads,
                           const Tensor& norm) {
  fill_head_gradients(p, b.d.o, grads);
  p.d_final_W = data_or_null(b.d.W), p.d_final_b = data_or_null(b.d.b);
  p.kept = b.kept[0].const_data_ptr();
  p.deta = grads.eta.data_ptr();
  p.dW = data_or_null(grads.W), p.db = data_or_null(grads.b), p.dnorm = norm.data_ptr();
  if (grads.position.defined()) grads.position.zero_();  // a count has no derivative
}

}  // namespace lrnn::ops
