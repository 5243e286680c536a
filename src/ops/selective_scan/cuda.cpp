#include "kernels/cuda/selective_scan/selective_scan.h"

#include "ops/cuda/stream.h"
#include "ops/selective_scan/kernels.h"

// The CUDA kernels of the selective scan: tensors in, pointers out.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

void check_states(const Tensor& A) {
  check(A.size(1) <= kernels::cuda::kMostScanStates, "[selective_scan] the GPU kernels keep up to ",
        kernels::cuda::kMostScanStates, " numbers of state per channel, got ", A.size(1));
}

ScanForwardResult scan_forward(const Tensor& u, const Tensor& delta, const Tensor& A,
                               const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                               const MaybeTensor& z, const MaybeTensor& delta_bias,
                               const MaybeTensor& state, bool softplus, bool negative,
                               const MaybeTensor& cu_seqlens, bool save) {
  const OnDevice on(u);
  check_states(A);
  ScanTensors in(u, delta, A, B, C, D, z, delta_bias, state, cu_seqlens);
  kernels::SelectiveScanForward p;
  in.fill(p, softplus, negative);
  const auto wide = u.options().dtype(wide_type(u));
  Tensor y = C ? at::empty(u.sizes(), u.options()) : ops::none(u),
         final_state = at::empty({p.S, p.D, p.N}, wide), states = at::empty({0}, wide);
  if (save)
    states = at::empty({kernels::cuda::scan_kept(p), p.D, kernels::cuda::scan_padded(p.N)}, wide);
  if (C) p.y = kernel_rows(y);
  p.final_state = final_state.data_ptr();
  if (states.numel() > 0) p.states = states.data_ptr();
  kernels::cuda::scan_forward(p, on.stream());
  return {y, final_state, states};
}

struct OnGpu {
  void* stream;
  int64_t groups(const kernels::SelectiveScanBackward& p) const {
    return kernels::cuda::scan_groups(p);
  }
  void run(const kernels::SelectiveScanBackward& p) const {
    kernels::cuda::scan_backward(p, stream);
  }
  Tensor total(const Tensor& partial) const { return partial.sum(0); }
};

ScanBackwardResult scan_backward_cuda(const MaybeTensor& dy, const MaybeTensor& d_final_state,
                                      const Tensor& u, const Tensor& delta, const Tensor& A,
                                      const Tensor& B, const MaybeTensor& C, const MaybeTensor& D,
                                      const MaybeTensor& z, const MaybeTensor& delta_bias,
                                      const MaybeTensor& state, const Tensor& states, bool softplus,
                                      bool negative, const MaybeTensor& cu_seqlens) {
  const OnDevice on(u);
  check_states(A);
  return ops::scan_backward(OnGpu{on.stream()}, dy, d_final_state, u, delta, A, B, C, D, z,
                            delta_bias, state, states, softplus, negative, cu_seqlens);
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("selective_scan_forward", scan_forward);
  m.impl("selective_scan_backward", scan_backward_cuda);
}

}  // namespace lrnn::ops::cuda
