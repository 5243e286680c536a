#include "kernels/cuda/mlstm/mlstm.h"

#include "ops/diagonal/cuda.h"
#include "ops/mlstm/cuda_chunk.h"
#include "ops/cuda/stream.h"
#include "ops/mlstm/inner.h"
#include "ops/torch.h"

// The mLSTM cell on CUDA tensors: in chunks where they fit, else a kernel for its gates, the
// diagonal recurrence for C and n together (n is the column whose values are 1), and plain torch
// between.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

struct MlstmOnDevice {
  Tensor q, k, v, i, f, state, m, cu_seqlens;  // all wide; v and state [..,V+1]
  Tensor all_m, log_forget, log_input, final_m;
  kernels::cuda::MlstmGates p;
  int64_t K, V;
  double scale;

  MlstmOnDevice(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& i_,
                const Tensor& f_, const MaybeTensor& C_, const MaybeTensor& n_,
                const MaybeTensor& m_, double scale_, const MaybeTensor& cu_seqlens_)
      : cu_seqlens(checked_offsets("mlstm", cu_seqlens_, q_)), scale(scale_) {
    const auto type = wide_type(q_);
    q = q_.to(type), k = k_.to(type), i = i_.to(type).contiguous(), f = f_.to(type).contiguous();
    v = at::cat(
        {v_.to(type), at::ones({1}, i.options()).expand({q.size(0), q.size(1), q.size(2), 1})}, -1);
    if (C_) {
      state = at::cat({C_->to(type), n_->to(type).unsqueeze(-1)}, -1);
      m = m_->to(type).contiguous();
      p.first = m.const_data_ptr();
    }
    p.type = kernel_type(i);
    p.B = p.S = q.size(0), p.T = q.size(1), p.H = q.size(2), K = q.size(3), V = v_.size(3);
    p.i = i.const_data_ptr(), p.f = f.const_data_ptr();
    if (cu_seqlens.defined())
      p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }

  void gates(const OnDevice& on) {
    all_m = at::empty_like(i), log_forget = at::empty_like(i), log_input = at::empty_like(i);
    final_m = at::empty({p.S, p.H}, i.options());
    kernels::cuda::mlstm_gates(p, all_m.data_ptr(), log_forget.data_ptr(), log_input.data_ptr(),
                               final_m.data_ptr(), on.stream());
  }
  Tensor factor() const { return (log_input.exp() * scale).unsqueeze(-1); }  // of the keys
  Tensor log_decay() const { return log_forget.unsqueeze(-1).expand({p.B, p.T, p.H, K}); }
  MaybeTensor offsets() const { return maybe(cu_seqlens); }
};

// What h is divided by [B,T,H], from n . q.
Tensor mlstm_size(const Tensor& along, const Tensor& m, double eps) {
  return at::maximum(along.abs(), m.neg().exp()).add_(eps);
}

MlstmForwardResult mlstm_forward_cuda(const Tensor& q, const Tensor& k, const Tensor& v,
                                      const Tensor& i, const Tensor& f, const MaybeTensor& C,
                                      const MaybeTensor& n, const MaybeTensor& m, double scale,
                                      double eps, const MaybeTensor& cu_seqlens, bool save) {
  if (mlstm_in_chunks(q, v))
    return mlstm_chunk_forward(q, k, v, i, f, C, n, m, scale, eps, cu_seqlens, save);
  const OnDevice on(q);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  MlstmOnDevice in(q, k, v, i, f, C, n, m, scale, cu_seqlens);
  in.gates(on);
  auto [read, final_state, states] =
      diagonal_forward_cuda(in.q, in.k * in.factor(), in.v, in.log_decay(), {}, {}, maybe(in.state),
                            1, false, in.offsets(), save);
  const Tensor size = mlstm_size(read.select(-1, in.V), in.all_m, eps);
  const Tensor h = (read.narrow(-1, 0, in.V) / size.unsqueeze(-1)).to(q.scalar_type());
  // In one piece, as backward gets it.
  const Tensor kept = save ? at::cat({states.flatten(), read.flatten()}) : states;
  return {h, final_state.narrow(-1, 0, in.V).contiguous(),
          final_state.select(-1, in.V).contiguous(), in.final_m, kept};
}

MlstmBackwardResult mlstm_backward_cuda(const MaybeTensor& dh_, const MaybeTensor& dfinal_C,
                                        const MaybeTensor& dfinal_n, const MaybeTensor& dfinal_m_,
                                        const Tensor& final_C, const Tensor& final_n,
                                        const Tensor& q, const Tensor& k, const Tensor& v,
                                        const Tensor& i, const Tensor& f, const MaybeTensor& C,
                                        const MaybeTensor& n, const MaybeTensor& m,
                                        const Tensor& kept, double scale, double eps,
                                        const MaybeTensor& cu_seqlens) {
  if (mlstm_in_chunks(q, v))
    return mlstm_chunk_backward(dh_, dfinal_C, dfinal_n, dfinal_m_, final_C, final_n, q, k, v, i, f,
                                C, n, m, kept, scale, eps, cu_seqlens);
  const OnDevice on(q);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  MlstmOnDevice in(q, k, v, i, f, C, n, m, scale, cu_seqlens);
  in.gates(on);
  const int64_t V = in.V;
  const auto wide = in.i.options();
  const auto type = in.i.scalar_type();
  const int64_t read_size = in.p.B * in.p.T * in.p.H * (V + 1);
  const Tensor states = kept.narrow(0, 0, kept.size(0) - read_size),
               read = kept.narrow(0, kept.size(0) - read_size, read_size)
                          .view({in.p.B, in.p.T, in.p.H, V + 1});
  // h = read / size, size = max(|n . q|, exp(-m)) + eps.
  Tensor dread, dm = at::zeros_like(in.i);
  if (dh_) {
    const Tensor dh = dh_->to(type), along = read.select(-1, V),
                 size = mlstm_size(along, in.all_m, eps), inverse = size.reciprocal().unsqueeze(-1);
    const Tensor shrink = (dh * read.narrow(-1, 0, V) * inverse).sum(-1);  // -dsize size
    const Tensor by_along = along.abs() >= in.all_m.neg().exp();
    const Tensor dalong =
        at::where(by_along, shrink.neg() * along.sign() * inverse.squeeze(-1), at::zeros({}, wide));
    // exp(-m) / size, without an infinity where m is far below zero.
    dm = at::where(by_along, at::zeros({}, wide), shrink / (in.all_m.exp() * eps + 1));
    dread = at::cat({dh * inverse, dalong.unsqueeze(-1)}, -1);
  }
  MaybeTensor dfinal;
  if (dfinal_C || dfinal_n) {
    const std::vector<int64_t> sizes = {in.p.S, in.p.H, in.K};
    dfinal = at::cat({dfinal_C ? dfinal_C->to(type) : at::zeros({in.p.S, in.p.H, in.K, V}, wide),
                      (dfinal_n ? dfinal_n->to(type) : at::zeros(sizes, wide)).unsqueeze(-1)},
                     -1);
  }
  const Tensor factor = in.factor();
  auto [dq, dkeys, dv, dlog_decay, dkk, drate, dstate] =
      diagonal_backward_cuda(maybe(dread), dfinal, in.q, in.k * factor, in.v, in.log_decay(), {},
                             {}, maybe(in.state), states, 1, false, in.offsets());
  if (!dh_) dq = at::zeros(q.sizes(), q.options());
  const Tensor dlog_forget = dlog_decay.sum(-1), dlog_input = (dkeys * in.k * factor).sum(-1);
  Tensor dfinal_m, di = at::empty_like(in.i), df = at::empty_like(in.f),
                   dfirst = C ? at::empty({in.p.S, in.p.H}, wide) : at::empty({0}, wide);
  if (dfinal_m_) dfinal_m = dfinal_m_->to(type).contiguous();
  kernels::cuda::mlstm_gate_gradients(
      in.p, in.all_m.const_data_ptr(), dm.const_data_ptr(), dlog_forget.const_data_ptr(),
      dlog_input.const_data_ptr(), dfinal_m.defined() ? dfinal_m.const_data_ptr() : nullptr,
      di.data_ptr(), df.data_ptr(), C ? dfirst.data_ptr() : nullptr, on.stream());
  const auto empty = [&] { return at::empty({0}, wide); };
  return {dq.to(q.scalar_type()),
          (dkeys * factor).to(k.scalar_type()),
          dv.narrow(-1, 0, V).to(v.scalar_type()).contiguous(),
          di.to(i.scalar_type()),
          df.to(f.scalar_type()),
          C ? dstate.narrow(-1, 0, V).contiguous() : empty(),
          C ? dstate.select(-1, V).contiguous() : empty(),
          dfirst};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("mlstm_forward", mlstm_forward_cuda);
  m.impl("mlstm_backward", mlstm_backward_cuda);
}

}  // namespace lrnn::ops::cuda
