#pragma once
#include "ops/inner.h"

namespace lrnn::ops::cuda {

// cu_seqlens on the device of x. Offsets that lie on the CPU are checked there; those on the GPU
// are not read back, which would stop the stream: the kernels stay inside the tensors whatever they
// say.
inline torch::Tensor checked_offsets(const char* op, const MaybeTensor& cu_seqlens,
                                     const torch::Tensor& x) {
  if (!cu_seqlens || !cu_seqlens->defined()) return {};
  const torch::Tensor cu = cu_seqlens->contiguous();
  if (cu.device().is_cpu()) checked_bounds(op, cu, x.size(1));
  return cu.to(x.device());
}

}  // namespace lrnn::ops::cuda
