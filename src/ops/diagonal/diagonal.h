#pragma once
#include "kernels/diagonal.h"
#include "ops/by_sequence.h"
#include "ops/fill_heads.h"
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/rwkv7/rwkv7.h"

// What gated linear attention and RWKV-7 have in common, and what their kernels compute;
// kernels/diagonal.h has the recurrence.
namespace lrnn::ops {

struct Diagonal {
  const char* op = "";
  Tensor q, k, v, log_decay;  // q undefined: no outputs are wanted, only the state
  Tensor kk, rate;            // both undefined: no rank-one term
  Tensor state;
  double scale = 1;
  bool negative = false;
  Tensor cu_seqlens;
};

struct DiagonalResult {
  Tensor o, state;
};

inline Diagonal as_diagonal(const GatedLinearAttention& in) {
  return {.op = in.kName,
          .q = in.q,
          .k = in.k,
          .v = in.v,
          .log_decay = in.log_gate,
          .kk = {},
          .rate = {},
          .state = in.state,
          .scale = scale_of(in.scale, in.k),
          .negative = in.negative,
          .cu_seqlens = in.cu_seqlens};
}
inline Diagonal as_diagonal(const Rwkv7& in) {
  return {.op = in.kName,
          .q = in.r,
          .k = in.k,
          .v = in.v,
          .log_decay = in.log_w,
          .kk = in.kk,
          .rate = in.a,
          .state = in.state,
          .scale = in.scale,
          .negative = false,
          .cu_seqlens = in.cu_seqlens};
}

// Tensors in, pointers out.
inline void fill(kernels::DiagonalInputs& p, const Diagonal& in) {
  fill_heads(p, in);
  p.K = in.k.size(3), p.V = in.v.size(3), p.scale = in.scale, p.negative = in.negative;
  p.log_decay = kernel_rows(in.log_decay);
  if (in.kk.defined()) p.kk = kernel_rows(in.kk), p.rate = kernel_rows(in.rate);
  p.state = data_or_null(in.state);
}

inline void fill_gradients(kernels::DiagonalBackward& p, const DiagonalResult& d,
                           const Diagonal& grads) {
  if (grads.q.defined()) p.d_o = kernel_rows(d.o), p.dq = kernel_rows(grads.q);
  p.d_final_state = data_or_null(d.state);
  p.dk = kernel_rows(grads.k), p.dv = kernel_rows(grads.v);
  p.dlog_decay = kernel_rows(grads.log_decay);
  if (grads.kk.defined()) p.dkk = kernel_rows(grads.kk), p.drate = kernel_rows(grads.rate);
  p.dstate = data_or_null(grads.state);
}

// The back end of an op on the diagonal recurrence of a device: a struct with keep, forward and
// backward of Diagonal.
template <class In_, class Device> struct DiagonalBackEnd {
  using In = In_;
  static std::vector<Tensor> keep(const In& in) { return Device::keep(as_diagonal(in)); }
  static void forward(const In& in, typename In::Result& out, std::vector<Tensor>& kept) {
    Device::forward(as_diagonal(in), {out.o, out.state}, kept);
  }
  static void backward(const Backward<In>& b, In& grads) {
    Device::backward(as_diagonal(b.in), {b.d.o, b.d.state}, b.kept, as_diagonal(grads));
  }
};

}  // namespace lrnn::ops

namespace lrnn::ops::cuda {

// The diagonal recurrence on CUDA tensors, for the ops that are made of it.
struct DiagonalCuda {
  static std::vector<Tensor> keep(const Diagonal& in);
  static void forward(const Diagonal& in, const DiagonalResult& out,
                      const std::vector<Tensor>& kept);
  static void backward(const Diagonal& in, const DiagonalResult& d, const std::vector<Tensor>& kept,
                       const Diagonal& grads);
};

}  // namespace lrnn::ops::cuda
