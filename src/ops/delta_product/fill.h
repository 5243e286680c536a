#pragma once
#include "kernels/delta_product.h"
#include "ops/by_sequence.h"
#include "ops/delta_product/delta_product.h"

namespace lrnn::ops {

inline int64_t heads_per_key(const DeltaProduct& in) {
  const int64_t G = in.k.size(3);
  return G > 0 ? in.beta.size(3) / G : 1;
}

// Tensors in, pointers out: what the kernels of both devices read, from prepared inputs.
inline void fill(kernels::DeltaProductInputs& p, const DeltaProduct& in) {
  p.type = kernel_type(in.k);
  p.B = p.S = in.k.size(0), p.T = in.k.size(1), p.N = in.k.size(2), p.H = in.beta.size(3);
  p.K = in.k.size(4), p.V = in.v.size(4);
  const int64_t group = heads_per_key(in);
  check(p.H < (int64_t(1) << 29) / group, "[delta_product] ", in.k.size(3), " key heads for ", p.H,
        " value heads are too few");
  p.scale = scale_of(in.scale, in.k);
  if (in.q.defined()) p.q = {kernel_rows(in.q), group};
  p.k = {kernel_rows(in.k), group};
  p.beta = in.beta.const_data_ptr();
  p.log_gate = data_or_null(in.log_gate), p.state = data_or_null(in.state);
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

// Memory for the gradients of keys or queries of every head, where several share them and `shared`
// will have their sums; else that itself.
inline Tensor of_every_head(const Tensor& shared, int64_t H) {
  if (!shared.defined() || shared.size(-2) == H) return shared;
  auto sizes = shared.sizes().vec();
  sizes[sizes.size() - 2] = H;
  return at::empty(sizes, shared.options());
}

}  // namespace lrnn::ops
