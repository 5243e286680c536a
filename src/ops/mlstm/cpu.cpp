#include <torch/library.h>

#include "kernels/mlstm.h"
#include "ops/mlstm/inner.h"
#include "ops/parallel.h"
#include "ops/torch.h"

// The CPU and Meta kernels of the inner ops: tensors in, pointers out.
namespace lrnn::ops {
namespace {

using torch::Tensor;

// Inputs in the form the kernel reads, kept alive together.
struct MlstmTensors {
  Tensor q, k, v, i, f, C, n, m, cu_seqlens;
  MlstmTensors(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& i_,
               const Tensor& f_, const MaybeTensor& C_, const MaybeTensor& n_,
               const MaybeTensor& m_, const MaybeTensor& cu_seqlens_)
      : q(with_rows(q_)), k(with_rows(k_)), v(with_rows(v_)) {
    const auto wide = [&](const Tensor& x) { return x.to(wide_type(q)).contiguous(); };
    i = wide(i_), f = wide(f_);
    if (C_) C = wide(*C_), n = wide(*n_), m = wide(*m_);
    if (cu_seqlens_) cu_seqlens = cu_seqlens_->to(torch::kCPU).contiguous();
  }

  void fill(kernels::MlstmInputs& p, double scale, double eps) const {
    p.type = kernel_type(q);
    p.B = p.S = q.size(0), p.T = q.size(1), p.H = q.size(2), p.K = q.size(3), p.V = v.size(3);
    p.scale = scale, p.eps = eps;
    p.q = kernel_rows(q), p.k = kernel_rows(k), p.v = kernel_rows(v);
    p.i = i.const_data_ptr(), p.f = f.const_data_ptr();
    if (C.defined()) p.C = C.const_data_ptr(), p.n = n.const_data_ptr(), p.m = m.const_data_ptr();
    if (!cu_seqlens.defined()) return;
    p.cu_seqlens = checked_bounds("mlstm", cu_seqlens, p.T), p.S = cu_seqlens.size(0) - 1;
  }
};

MlstmForwardResult mlstm_empty(const Tensor& q, const Tensor& v, const MaybeTensor& cu_seqlens,
                               bool save) {
  const auto x = q.sym_sizes();
  const c10::SymInt B = x[0], T = x[1], H = x[2], K = x[3], V = v.sym_size(3),
                    S = cu_seqlens ? cu_seqlens->sym_size(0) - 1 : B;
  const auto wide = q.options().dtype(wide_type(q));
  return {at::empty_symint({B, T, H, V}, q.options()), at::empty_symint({S, H, K, V}, wide),
          at::empty_symint({S, H, K}, wide), at::empty_symint({S, H}, wide),
          save ? at::empty_symint({B, H, T / kernels::kMlstmChunk, K * V + K + 1}, wide)
               : at::empty({0}, wide)};
}

MlstmForwardResult mlstm_forward_meta(const Tensor& q, const Tensor&, const Tensor& v,
                                      const Tensor&, const Tensor&, const MaybeTensor&,
                                      const MaybeTensor&, const MaybeTensor&, double, double,
                                      const MaybeTensor& cu_seqlens, bool save) {
  return mlstm_empty(q, v, cu_seqlens, save);
}

MlstmBackwardResult mlstm_backward_meta(const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
                                        const MaybeTensor&, const Tensor&, const Tensor&,
                                        const Tensor& q, const Tensor& k, const Tensor& v,
                                        const Tensor& i, const Tensor& f, const MaybeTensor& C,
                                        const MaybeTensor& n, const MaybeTensor& m,
                                        const Tensor& states, double, double, const MaybeTensor&) {
  const auto empty = [](const Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); };
  const auto if_given = [&](const MaybeTensor& x) {
    return x ? empty(*x) : at::empty({0}, states.options());
  };
  return {empty(q), empty(k), empty(v), empty(i), empty(f), if_given(C), if_given(n), if_given(m)};
}

MlstmForwardResult mlstm_forward_cpu(const Tensor& q, const Tensor& k, const Tensor& v,
                                     const Tensor& i, const Tensor& f, const MaybeTensor& C,
                                     const MaybeTensor& n, const MaybeTensor& m, double scale,
                                     double eps, const MaybeTensor& cu_seqlens, bool save) {
  const MlstmTensors in(q, k, v, i, f, C, n, m, cu_seqlens);
  kernels::MlstmForward p;
  in.fill(p, scale, eps);
  MlstmForwardResult out = mlstm_empty(q, v, cu_seqlens, save);
  auto& [h, final_C, final_n, final_m, states] = out;
  p.h = kernel_rows(h);
  p.final_C = final_C.data_ptr(), p.final_n = final_n.data_ptr(), p.final_m = final_m.data_ptr();
  if (save && states.numel() > 0) p.states = states.data_ptr();
  kernels::mlstm_forward(p, parallel());
  return out;
}

MlstmBackwardResult mlstm_backward_cpu(const MaybeTensor& dh, const MaybeTensor& dfinal_C,
                                       const MaybeTensor& dfinal_n, const MaybeTensor& dfinal_m,
                                       const Tensor& final_C, const Tensor& final_n,
                                       const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& i, const Tensor& f, const MaybeTensor& C,
                                       const MaybeTensor& n, const MaybeTensor& m,
                                       const Tensor& states, double scale, double eps,
                                       const MaybeTensor& cu_seqlens) {
  const MlstmTensors in(q, k, v, i, f, C, n, m, cu_seqlens);
  kernels::MlstmBackward p;
  in.fill(p, scale, eps);
  const auto wide = in.i.options();
  const auto given = [&](const MaybeTensor& x) {
    return x ? x->to(in.i.scalar_type()).contiguous() : Tensor();
  };
  const auto pointer = [](const Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; };
  const Tensor dC_final = given(dfinal_C), dn_final = given(dfinal_n), dm_final = given(dfinal_m);
  Tensor dh_rows;
  if (dh) dh_rows = with_rows(dh->to(q.scalar_type())), p.dh = kernel_rows(dh_rows);
  p.dfinal_C = pointer(dC_final), p.dfinal_n = pointer(dn_final), p.dfinal_m = pointer(dm_final);
  p.final_C = final_C.const_data_ptr(), p.final_n = final_n.const_data_ptr();
  p.states = states.const_data_ptr();
  Tensor dq = at::empty(q.sizes(), q.options()), dk = at::empty(k.sizes(), k.options()),
         dv = at::empty(v.sizes(), v.options()), di = at::empty(i.sizes(), wide),
         df = at::empty(f.sizes(), wide);
  const auto like = [&](const Tensor& x) {
    return x.defined() ? at::empty(x.sizes(), wide) : at::empty({0}, wide);
  };
  Tensor dC = like(in.C), dn = like(in.n), dm = like(in.m);
  p.dq = kernel_rows(dq), p.dk = kernel_rows(dk), p.dv = kernel_rows(dv);
  p.di = di.data_ptr(), p.df = df.data_ptr();
  if (C) p.dC = dC.data_ptr(), p.dn = dn.data_ptr(), p.dm = dm.data_ptr();
  kernels::mlstm_backward(p, parallel());
  return {dq, dk, dv, di.to(i.scalar_type()), df.to(f.scalar_type()), dC, dn, dm};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("mlstm_forward", mlstm_forward_cpu);
  m.impl("mlstm_backward", mlstm_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("mlstm_forward", mlstm_forward_meta);
  m.impl("mlstm_backward", mlstm_backward_meta);
}

}  // namespace lrnn::ops
