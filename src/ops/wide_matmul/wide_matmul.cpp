#include "ops/wide_matmul/wide_matmul.h"

#include "ops/inner.h"
#include "ops/torch.h"

namespace lrnn::ops {

torch::Tensor wide_matmul_definition(const torch::Tensor& a, const torch::Tensor& b) {
  return at::matmul(a, b);
}

torch::Tensor wide_matmul(const torch::Tensor& a, const torch::Tensor& b) {
  const auto no_autocast = without_autocast();
  return at::matmul(a, b);
}

}  // namespace lrnn::ops
