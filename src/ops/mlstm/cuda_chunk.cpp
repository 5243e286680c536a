#include "ops/mlstm/cuda_chunk.h"

#include "kernels/cuda/mlstm/mlstm.h"
#include "ops/cuda/stream.h"
#include "ops/torch.h"

// Tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

void fill_sizes(kernels::MlstmInputs& p, const Tensor& q, const Tensor& v) {
  p.type = kernel_type(q);
  p.B = p.S = q.size(0), p.T = q.size(1), p.H = q.size(2), p.K = q.size(3), p.V = v.size(3);
}

// Inputs in the form the kernel reads, kept alive together.
struct MlstmChunkTensors {
  Tensor q, k, v, i, f, C, n, m, cu_seqlens;

  MlstmChunkTensors(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& i_,
                    const Tensor& f_, const MaybeTensor& C_, const MaybeTensor& n_,
                    const MaybeTensor& m_, const MaybeTensor& cu_seqlens_)
      : q(ops::with_rows(q_)),
        k(ops::with_rows(k_)),
        v(ops::with_rows(v_)),
        cu_seqlens(checked_offsets("mlstm", cu_seqlens_, q_)) {
    const auto wide = [](const Tensor& x) { return x.to(torch::kFloat32).contiguous(); };
    i = wide(i_), f = wide(f_);
    if (C_) C = wide(*C_), n = wide(*n_), m = wide(*m_);
  }

  void fill(kernels::MlstmInputs& p, double scale, double eps) const {
    fill_sizes(p, q, v);
    p.scale = scale, p.eps = eps;
    p.q = kernel_rows(q), p.k = kernel_rows(k), p.v = kernel_rows(v);
    p.i = i.const_data_ptr(), p.f = f.const_data_ptr();
    if (C.defined()) p.C = C.const_data_ptr(), p.n = n.const_data_ptr(), p.m = m.const_data_ptr();
    if (!cu_seqlens.defined()) return;
    p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }
};

}  // namespace

bool mlstm_in_chunks(const Tensor& q, const Tensor& v) {
  const OnDevice on(q);
  kernels::MlstmInputs p;
  fill_sizes(p, q, v);
  return kernels::cuda::mlstm_chunk_fits(p);
}

MlstmForwardResult mlstm_chunk_forward(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& i, const Tensor& f, const MaybeTensor& C,
                                       const MaybeTensor& n, const MaybeTensor& m, double scale,
                                       double eps, const MaybeTensor& cu_seqlens, bool save) {
  const OnDevice on(q);
  const MlstmChunkTensors in(q, k, v, i, f, C, n, m, cu_seqlens);
  kernels::MlstmForward p;
  in.fill(p, scale, eps);
  const auto wide = in.i.options();
  const Tensor h = at::empty({p.B, p.T, p.H, p.V}, q.options()),
               final_C = at::empty({p.S, p.H, p.K, p.V}, wide),
               final_n = at::empty({p.S, p.H, p.K}, wide), final_m = at::empty({p.S, p.H}, wide),
               kept = at::empty({save ? kernels::cuda::mlstm_chunk_kept(p) : 0}, wide);
  p.h = kernel_rows(h);
  p.final_C = final_C.data_ptr(), p.final_n = final_n.data_ptr(), p.final_m = final_m.data_ptr();
  if (kept.numel() > 0) p.states = kept.data_ptr();
  kernels::cuda::mlstm_chunk_forward(p, on.stream());
  return {h, final_C, final_n, final_m, kept};
}

MlstmBackwardResult mlstm_chunk_backward(const MaybeTensor& dh, const MaybeTensor& dfinal_C,
                                         const MaybeTensor& dfinal_n, const MaybeTensor& dfinal_m,
                                         const Tensor&, const Tensor&, const Tensor& q,
                                         const Tensor& k, const Tensor& v, const Tensor& i,
                                         const Tensor& f, const MaybeTensor& C,
                                         const MaybeTensor& n, const MaybeTensor& m,
                                         const Tensor& kept, double scale, double eps,
                                         const MaybeTensor& cu_seqlens) {
  const OnDevice on(q);
  const MlstmChunkTensors in(q, k, v, i, f, C, n, m, cu_seqlens);
  kernels::MlstmBackward p;
  in.fill(p, scale, eps);
  const auto wide = in.i.options();
  const auto given = [](const MaybeTensor& x) {
    return x ? x->to(torch::kFloat32).contiguous() : Tensor();
  };
  const auto pointer = [](const Tensor& x) { return x.defined() ? x.const_data_ptr() : nullptr; };
  const Tensor dC_final = given(dfinal_C), dn_final = given(dfinal_n), dm_final = given(dfinal_m),
               dh_rows = dh ? ops::with_rows(dh->to(q.scalar_type())) : Tensor();
  if (dh) p.dh = kernel_rows(dh_rows);
  p.dfinal_C = pointer(dC_final), p.dfinal_n = pointer(dn_final), p.dfinal_m = pointer(dm_final);
  p.states = kept.const_data_ptr();
  const Tensor dq = at::empty(q.sizes(), q.options()), dk = at::empty(k.sizes(), k.options()),
               dv = at::empty(v.sizes(), v.options()), di = at::empty(i.sizes(), wide),
               df = at::empty(f.sizes(), wide);
  const auto like = [&](const Tensor& x) {
    return x.defined() ? at::empty(x.sizes(), wide) : at::empty({0}, wide);
  };
  const Tensor dC = like(in.C), dn = like(in.n), dm = like(in.m);
  p.dq = kernel_rows(dq), p.dk = kernel_rows(dk), p.dv = kernel_rows(dv);
  p.di = di.data_ptr(), p.df = df.data_ptr();
  if (C) p.dC = dC.data_ptr(), p.dn = dn.data_ptr(), p.dm = dm.data_ptr();
  kernels::cuda::mlstm_chunk_backward(p, on.stream());
  return {dq, dk, dv, di.to(i.scalar_type()), df.to(f.scalar_type()), dC, dn, dm};
}

}  // namespace lrnn::ops::cuda
