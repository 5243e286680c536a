#include "ops/diagonal/cuda.h"

#include "kernels/cuda/diagonal/diagonal.h"
#include "kernels/cuda/rwkv7/chunk.h"
#include "ops/cuda/stream.h"
#include "ops/torch.h"

// The CUDA kernels under gated linear attention and RWKV-7: tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

void check_room(const Tensor& k, bool rank_one) {
  check(k.size(3) <= kernels::cuda::kMostDiagonalKeys, "[", diagonal_name(rank_one),
        "] the GPU kernels have room for ", kernels::cuda::kMostDiagonalKeys, " keys, got ",
        k.size(3));
}

enum class DiagonalMethod : uint8_t { kWalk, kChunks, kRwkv7Chunks };

// Which kernel: by sizes alone, so that backward finds what forward kept.
DiagonalMethod choose_diagonal(const kernels::DiagonalInputs& p) {
  if (!p.q.data) return DiagonalMethod::kWalk;
  if (kernels::cuda::rwkv7_chunk_fits(p)) return DiagonalMethod::kRwkv7Chunks;
  return kernels::cuda::diagonal_chunk_fits(p) ? DiagonalMethod::kChunks : DiagonalMethod::kWalk;
}

// What forward keeps for backward: states in the form of each kernel.
Tensor room_for_states(const kernels::DiagonalInputs& p, DiagonalMethod method,
                       const torch::TensorOptions& wide) {
  if (method == DiagonalMethod::kRwkv7Chunks)
    return at::empty({kernels::cuda::rwkv7_chunk_states(p) / 4}, wide);
  if (method == DiagonalMethod::kChunks)
    return at::empty({kernels::cuda::diagonal_chunk_kept(p)}, wide);
  return at::empty({kernels::cuda::diagonal_kept(p), p.H, p.K, p.V}, wide);
}

Tensor room_for_rwkv7(const kernels::DiagonalInputs& p, bool backward,
                      const torch::TensorOptions& like) {
  return at::empty({kernels::cuda::rwkv7_chunk_work(p, backward)}, like.dtype(torch::kUInt8));
}

}  // namespace

DiagonalForwardResult diagonal_forward_cuda(const MaybeTensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& log_decay, const MaybeTensor& kk,
                                            const MaybeTensor& rate, const MaybeTensor& state,
                                            double scale, bool negative,
                                            const MaybeTensor& cu_seqlens, bool save) {
  const OnDevice on(k);
  check_room(k, kk.has_value());
  DiagonalTensors in{or_undefined(q),
                     k,
                     v,
                     log_decay,
                     or_undefined(kk),
                     or_undefined(rate),
                     or_undefined(state),
                     checked_offsets(diagonal_name(kk.has_value()), cu_seqlens, k)};
  kernels::DiagonalForward p;
  in.fill(p, scale, negative);
  const auto wide = k.options().dtype(wide_type(k));
  const DiagonalMethod method = choose_diagonal(p);
  Tensor o = q ? at::empty({p.B, p.T, p.H, p.V}, k.options()) : ops::none(k),
         final_state = at::empty({p.S, p.H, p.K, p.V}, wide), states = at::empty({0}, wide);
  if (save) states = room_for_states(p, method, wide);
  if (q) p.o = kernel_rows(o);
  p.final_state = final_state.data_ptr();
  if (states.numel() > 0) p.states = states.data_ptr();
  if (method == DiagonalMethod::kRwkv7Chunks)
    kernels::cuda::rwkv7_chunk_forward(p, room_for_rwkv7(p, false, k.options()).data_ptr(),
                                       on.stream());
  else if (method == DiagonalMethod::kChunks)
    kernels::cuda::diagonal_chunk_forward(p, on.stream());
  else
    kernels::cuda::diagonal_forward(p, on.stream());
  return {o, final_state, states};
}

DiagonalBackwardResult diagonal_backward_cuda(
    const MaybeTensor& d_o, const MaybeTensor& d_final_state, const MaybeTensor& q, const Tensor& k,
    const Tensor& v, const Tensor& log_decay, const MaybeTensor& kk, const MaybeTensor& rate,
    const MaybeTensor& state, const Tensor& states, double scale, bool negative,
    const MaybeTensor& cu_seqlens) {
  const OnDevice on(k);
  check_room(k, kk.has_value());
  const bool outputs = q.has_value() && d_o.has_value();
  DiagonalTensors in{or_undefined(q),
                     k,
                     v,
                     log_decay,
                     or_undefined(kk),
                     or_undefined(rate),
                     or_undefined(state),
                     checked_offsets(diagonal_name(kk.has_value()), cu_seqlens, k)};
  kernels::DiagonalBackward p;
  in.fill(p, scale, negative);
  const DiagonalMethod method = choose_diagonal(p);  // as forward did
  if (!outputs && method == DiagonalMethod::kWalk) p.q = {};
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
  if (method == DiagonalMethod::kRwkv7Chunks) {
    const Tensor work = room_for_rwkv7(p, true, k.options()),
                 gradients = room_for_states(p, method, wide);
    kernels::cuda::rwkv7_chunk_backward(p, work.data_ptr(), gradients.data_ptr(), on.stream());
  } else {
    const bool chunks = method == DiagonalMethod::kChunks;
    const int64_t groups =
        chunks ? kernels::cuda::diagonal_chunk_groups(p) : kernels::cuda::diagonal_groups(p);
    const Tensor sums = at::empty({groups, kk ? 5 : 3, p.B, p.T, p.H, p.K}, wide);
    chunks ? kernels::cuda::diagonal_chunk_backward(p, sums.data_ptr(), on.stream())
           : kernels::cuda::diagonal_backward(p, sums.data_ptr(), on.stream());
  }
  return {dq, dk, dv, dlog_decay.to(log_decay.scalar_type()), dkk, drate, dstate};
}

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("diagonal_forward", diagonal_forward_cuda);
  m.impl("diagonal_backward", diagonal_backward_cuda);
}

}  // namespace lrnn::ops::cuda
