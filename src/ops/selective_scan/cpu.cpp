#include <torch/library.h>

#include "ops/parallel.h"
#include "ops/rows.h"
#include "ops/selective_scan/kernels.h"

// The CPU and Meta kernels of the inner ops: tensors in, pointers out.
namespace lrnn::ops {
namespace {

using torch::Tensor;

ScanForwardResult scan_forward_results(const Tensor& u, const Tensor& A, bool outputs,
                                       const MaybeTensor& cu_seqlens, bool save) {
  const auto wide = u.options().dtype(wide_type(u));
  const c10::SymInt batch = u.sym_size(0), D = u.sym_size(2), N = A.sym_size(1),
                    S = cu_seqlens ? cu_seqlens->sym_size(0) - 1 : batch;
  return {outputs ? at::empty_symint(u.sym_sizes(), u.options()) : none(u),
          at::empty_symint({S, D, N}, wide),
          save ? at::empty_symint({batch, u.sym_size(1) / kernels::kSelectiveScanChunk, N, D}, wide)
               : at::empty({0}, wide)};
}

ScanForwardResult scan_forward_meta(const Tensor& u, const Tensor&, const Tensor& A, const Tensor&,
                                    const MaybeTensor& C, const MaybeTensor&, const MaybeTensor&,
                                    const MaybeTensor&, const MaybeTensor&, bool, bool,
                                    const MaybeTensor& cu_seqlens, bool save) {
  return scan_forward_results(u, A, C.has_value(), cu_seqlens, save);
}

ScanForwardResult scan_forward_cpu(const Tensor& u, const Tensor& delta, const Tensor& A,
                                   const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                   const MaybeTensor& z, const MaybeTensor& delta_bias,
                                   const MaybeTensor& state, bool softplus, bool negative,
                                   const MaybeTensor& cu_seqlens, bool save) {
  ScanTensors in(u, delta, A, B, C, D, z, delta_bias, state, cu_seqlens);
  kernels::SelectiveScanForward p;
  in.fill(p, softplus, negative);
  ScanForwardResult out = scan_forward_results(u, A, C.has_value(), cu_seqlens, save);
  auto& [y, final_state, states] = out;
  if (C) p.y = kernel_rows(y);
  p.final_state = final_state.data_ptr();
  if (save && states.numel() > 0) p.states = states.data_ptr();
  kernels::selective_scan_forward(p, parallel());
  return out;
}

ScanBackwardResult scan_backward_meta(const MaybeTensor& dy, const MaybeTensor&, const Tensor& u,
                                      const Tensor& delta, const Tensor& A, const Tensor& B,
                                      const MaybeTensor& C, const MaybeTensor& D,
                                      const MaybeTensor& z, const MaybeTensor& delta_bias,
                                      const MaybeTensor& state, const Tensor&, bool, bool,
                                      const MaybeTensor&) {
  const bool outputs = C.has_value() && dy.has_value();
  const auto like = [&](bool wanted, const Tensor& x) {
    return wanted ? at::empty_symint(x.sym_sizes(), x.options()) : none(u);
  };
  return {like(true, u),
          like(true, delta),
          like(true, A),
          like(true, B),
          like(outputs, or_undefined(C)),
          like(outputs && D, or_undefined(D)),
          like(outputs && z, or_undefined(z)),
          like(delta_bias.has_value(), or_undefined(delta_bias)),
          like(state.has_value(), or_undefined(state))};
}

struct OnCpu {
  int64_t groups(const kernels::SelectiveScanBackward& p) const {
    return kernels::selective_scan_groups(p.D, p.type);
  }
  void run(const kernels::SelectiveScanBackward& p) const {
    kernels::selective_scan_backward(p, parallel());
  }
  Tensor total(const Tensor& partial) const {
    const Tensor rows = partial.flatten(1);
    return (rows.size(0) > 0 ? add_up(rows) : at::zeros({rows.size(1)}, rows.options()))
        .view(partial.sizes().slice(1));
  }
};

ScanBackwardResult scan_backward_cpu(const MaybeTensor& dy, const MaybeTensor& d_final_state,
                                     const Tensor& u, const Tensor& delta, const Tensor& A,
                                     const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                     const MaybeTensor& z, const MaybeTensor& delta_bias,
                                     const MaybeTensor& state, const Tensor& states, bool softplus,
                                     bool negative, const MaybeTensor& cu_seqlens) {
  return scan_backward(OnCpu{}, dy, d_final_state, u, delta, A, B, C, D, z, delta_bias, state,
                       states, softplus, negative, cu_seqlens);
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("selective_scan_forward", scan_forward_cpu);
  m.impl("selective_scan_backward", scan_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("selective_scan_forward", scan_forward_meta);
  m.impl("selective_scan_backward", scan_backward_meta);
}

}  // namespace lrnn::ops
