#pragma once
#include <cstdint>

#include "kernels/types.h"

// The sigmoid of the gates on the GPU; ops/wide_sigmoid says what it is for.
namespace lrnn::kernels::cuda {

// y = scale sigmoid(x), and dx from dy. x and dx are of `type`, to which the sigmoid is rounded; y
// and dy are wide: double for kFloat64 and float otherwise.
struct Sigmoid {
  Type type = Type::kFloat32;
  int64_t n = 0;
  double scale = 1;
  const void* x = nullptr;
};
void sigmoid_forward(const Sigmoid& p, void* y, void* stream);
void sigmoid_backward(const Sigmoid& p, const void* dy, void* dx, void* stream);

}  // namespace lrnn::kernels::cuda
