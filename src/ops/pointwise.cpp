#include "ops/pointwise.h"

namespace lrnn::ops {

using torch::Tensor;

Tensor rms_norm(const Tensor& x, const Tensor& w, double eps) { return rms_norm_definition(x, w, eps); }
Tensor l2_norm(const Tensor& x, double eps) { return l2_norm_definition(x, eps); }
Tensor swiglu(const Tensor& gate, const Tensor& up) { return swiglu_definition(gate, up); }

}  // namespace lrnn::ops
