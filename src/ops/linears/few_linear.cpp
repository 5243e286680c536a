#include "ops/linears/few_linear.h"

#include "kernels/cuda/rows/rows.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

using kernels::cuda::kMostFewColumns;
using kernels::cuda::kMostFewRows;
constexpr int64_t kPack = 8;

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("few_linear(Tensor x, Tensor weight) -> Tensor");
  m.def(
      "few_linear_backward(Tensor dy, Tensor x, Tensor weight, Tensor(a!) dx, bool add) -> Tensor");
}

}  // namespace

bool has_few_rows(const Tensor& x, const Tensor& weight) {
  const auto on_packs = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0 && t.stride(1) == 1 &&
           t.stride(0) % kPack == 0;
  };
  const auto type = x.scalar_type();
  return x.is_cuda() && (type == at::kFloat || type == at::kBFloat16) &&
         weight.scalar_type() == type && weight.size(0) <= kMostFewRows && weight.size(0) > 0 &&
         weight.is_contiguous() && x.size(1) % kPack == 0 && x.size(1) <= kMostFewColumns &&
         x.size(1) > 0 && on_packs(x) && on_packs(weight);
}

Tensor few_linear_definition(const Tensor& x, const Tensor& weight) {
  return at::mm(x, weight.t());
}

Tensor few_linear(const Tensor& x, const Tensor& weight) {
  if (!has_few_rows(x, weight)) return few_linear_definition(x, weight);
  static const auto op = find_op<Tensor(const Tensor&, const Tensor&)>("lrnn::few_linear");
  return op.call(x, weight);
}

Tensor few_linear_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, Tensor& dx,
                           bool add) {
  if (!has_few_rows(x, weight)) {
    add ? dx.addmm_(dy, weight) : at::mm_out(dx, dy, weight);
    return at::mm(dy.t(), x);
  }
  static const auto op =
      find_op<Tensor(const Tensor&, const Tensor&, const Tensor&, Tensor&, bool)>(
          "lrnn::few_linear_backward");
  return op.call(dy, x, weight, dx, add);
}

}  // namespace lrnn::ops
