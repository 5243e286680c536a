#pragma once
#include "kernels/delta_product.h"
#include "ops/by_sequence.h"
#include "ops/delta_product/delta_product.h"

namespace lrnn::ops {

// Tensors in, pointers out: what the kernels of both devices read, from prepared inputs.
inline void fill(kernels::DeltaProductInputs& p, const DeltaProduct& in) {
  p.type = kernel_type(in.k);
  p.B = p.S = in.k.size(0), p.T = in.k.size(1), p.N = in.k.size(2), p.H = in.k.size(3);
  p.K = in.k.size(4), p.V = in.v.size(4);
  p.scale = scale_of(in.scale, in.k);
  if (in.q.defined()) p.q = kernel_rows(in.q);
  p.k = kernel_rows(in.k);
  p.beta = in.beta.const_data_ptr();
  p.log_gate = data_or_null(in.log_gate), p.state = data_or_null(in.state);
  if (in.cu_seqlens.defined())
    p.S = in.cu_seqlens.size(0) - 1, p.cu_seqlens = in.cu_seqlens.const_data_ptr<int64_t>();
}

}  // namespace lrnn::ops
