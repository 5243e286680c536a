#include "ops/cuda/diagonal.h"

#include "kernels/cuda/diagonal.h"
#include "ops/cuda/offsets.h"
#include "ops/cuda/stream.h"
#include "ops/torch.h"

// The CUDA kernels under gated linear attention and RWKV-7: tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

// Inputs in the form the kernel reads, kept alive together.
struct DiagonalTensors {
  Tensor q, k, v, log_decay, kk, rate, state, cu_seqlens;

  void fill(kernels::DiagonalInputs& p, double scale, bool negative) {
    log_decay = log_decay.to(wide_type(k));
    for (Tensor* x : {&q, &k, &v, &log_decay, &kk, &rate})
      if (x->defined()) *x = ops::with_rows(*x);
    p.type = kernel_type(k);
    p.B = k.size(0), p.T = k.size(1), p.H = k.size(2), p.K = k.size(3), p.V = v.size(3), p.S = p.B;
    check(p.K <= kernels::cuda::kMostDiagonalKeys, "[",
          kk.defined() ? "rwkv7" : "gated_linear_attention", "] the GPU kernels have room for ",
          kernels::cuda::kMostDiagonalKeys, " keys, got ", p.K);
    p.scale = scale, p.negative = negative;
    if (q.defined()) p.q = kernel_rows(q);
    p.k = kernel_rows(k), p.v = kernel_rows(v), p.log_decay = kernel_rows(log_decay);
    if (kk.defined()) p.kk = kernel_rows(kk), p.rate = kernel_rows(rate);
    if (state.defined()) {
      state = state.contiguous();
      p.state = state.const_data_ptr();
    }
    if (!cu_seqlens.defined()) return;
    p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }
};

const char* diagonal_name(const MaybeTensor& kk) { return kk ? "rwkv7" : "gated_linear_attention"; }

}  // namespace

DiagonalForwardResult diagonal_forward_cuda(const MaybeTensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& log_decay, const MaybeTensor& kk,
                                            const MaybeTensor& rate, const MaybeTensor& state,
                                            double scale, bool negative,
                                            const MaybeTensor& cu_seqlens, bool save) {
  const OnDevice on(k);
  DiagonalTensors in{or_undefined(q),
                     k,
                     v,
                     log_decay,
                     or_undefined(kk),
                     or_undefined(rate),
                     or_undefined(state),
                     checked_offsets(diagonal_name(kk), cu_seqlens, k)};
  kernels::DiagonalForward p;
  in.fill(p, scale, negative);
  const auto wide = k.options().dtype(wide_type(k));
  Tensor o = q ? at::empty({p.B, p.T, p.H, p.V}, k.options()) : ops::none(k),
         final_state = at::empty({p.S, p.H, p.K, p.V}, wide), states = at::empty({0}, wide);
  if (save) states = at::empty({kernels::cuda::diagonal_kept(p), p.H, p.K, p.V}, wide);
  if (q) p.o = kernel_rows(o);
  p.final_state = final_state.data_ptr();
  if (states.numel() > 0) p.states = states.data_ptr();
  kernels::cuda::diagonal_forward(p, on.stream());
  return {o, final_state, states};
}

DiagonalBackwardResult diagonal_backward_cuda(
    const MaybeTensor& d_o, const MaybeTensor& d_final_state, const MaybeTensor& q, const Tensor& k,
    const Tensor& v, const Tensor& log_decay, const MaybeTensor& kk, const MaybeTensor& rate,
    const MaybeTensor& state, const Tensor& states, double scale, bool negative,
    const MaybeTensor& cu_seqlens) {
  const OnDevice on(k);
  const bool outputs = q.has_value() && d_o.has_value();
  DiagonalTensors in{outputs ? *q : Tensor(),
                     k,
                     v,
                     log_decay,
                     or_undefined(kk),
                     or_undefined(rate),
                     or_undefined(state),
                     checked_offsets(diagonal_name(kk), cu_seqlens, k)};
  kernels::DiagonalBackward p;
  in.fill(p, scale, negative);
  const auto wide = k.options().dtype(wide_type(k));
  const auto like = [&](bool wanted, const Tensor& x) {
    return wanted ? at::empty(x.sizes(), x.options()) : ops::none(k);
  };
  Tensor dq = like(outputs, k), dk = like(true, k), dv = like(true, v),
         dlog_decay = like(true, in.log_decay), dkk = like(kk.has_value(), k),
         drate = like(kk.has_value(), k), dstate = like(state.has_value(), in.state), d_o_rows,
         d_final;
  if (outputs) {
    d_o_rows = ops::with_rows(d_o->to(k.scalar_type()));
    p.d_o = kernel_rows(d_o_rows), p.dq = kernel_rows(dq);
  }
  if (d_final_state) {
    d_final = d_final_state->to(wide_type(k)).contiguous();
    p.d_final_state = d_final.const_data_ptr();
  }
  p.states = states.const_data_ptr();
  p.dk = kernel_rows(dk), p.dv = kernel_rows(dv), p.dlog_decay = kernel_rows(dlog_decay);
  if (kk) p.dkk = kernel_rows(dkk), p.drate = kernel_rows(drate);
  if (state) p.dstate = dstate.data_ptr();
  Tensor sums =
      at::empty({kernels::cuda::diagonal_groups(p), kk ? 5 : 3, p.B, p.T, p.H, p.K}, wide);
  kernels::cuda::diagonal_backward(p, sums.data_ptr(), on.stream());
  return {dq, dk, dv, dlog_decay.to(log_decay.scalar_type()), dkk, drate, dstate};
}

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("diagonal_forward", diagonal_forward_cuda);
  m.impl("diagonal_backward", diagonal_backward_cuda);
}

}  // namespace lrnn::ops::cuda
