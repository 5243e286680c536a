#pragma once
#include "tests/cuda/device.h"
#include "tests/ops/recurrence.h"

// A recurrent op on the GPU as a function of tensors on the CPU, so that the problems, the weights
// of the loss and the definition are those of the CPU tests.
namespace lrnn::recurrence {

inline Function on_gpu(const Function& kernel) {
  return [kernel](const Tensors& in) {
    Tensors moved;
    for (const auto& [name, x] : in) moved[name] = x.defined() ? x.to(torch::kCUDA) : x;
    Tensors out = kernel(moved);
    for (auto& [name, y] : out) y = y.cpu();
    return out;
  };
}

inline Tensors defined_in_double(const Op& op, const Tensors& in) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // the definition's matrices are too small to share
  const Tensors want = everything(in_double(in), op.definition);
  at::set_num_threads(threads);
  return want;
}

// Outputs and all gradients against the definition in double, and the same bits twice.
inline void expect_definition_on_gpu(const Op& op, const Tensors& in, double limit) {
  const Tensors want = defined_in_double(op, in), got = everything(in, on_gpu(op.kernel));
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, x] : want) EXPECT_CLOSE_TO(name, got.at(name), x, limit);
  expect_same_bits(everything(in, on_gpu(op.kernel)), got);
}

}  // namespace lrnn::recurrence
