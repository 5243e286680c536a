#pragma once
#include "ops/declare.h"

// Tensors in, pointers out: what the back ends of recurrences over heads are given alike.
namespace lrnn::ops {

template <class Problem, class In> void fill_heads(Problem& p, const In& in) {
  p.type = kernel_type(in.k);
  p.B = p.S = in.k.size(0), p.T = in.k.size(1), p.H = in.k.size(2);
  if (in.q.defined()) p.q = kernel_rows(in.q);
  p.k = kernel_rows(in.k), p.v = kernel_rows(in.v);
  const Tensor& bounds = in.cu_seqlens;
  if (bounds.defined()) p.S = bounds.size(0) - 1, p.cu_seqlens = bounds.const_data_ptr<int64_t>();
}

// Gradients of queries, where somebody asked for outputs, of keys and of values.
template <class Problem, class Grads>
void fill_head_gradients(Problem& p, const Tensor& d_o, const Grads& grads) {
  if (grads.q.defined())
    p.d_o = kernel_rows(d_o), p.dq = kernel_rows(grads.q);
  else
    p.q = {};
  p.dk = kernel_rows(grads.k), p.dv = kernel_rows(grads.v);
}

}  // namespace lrnn::ops
