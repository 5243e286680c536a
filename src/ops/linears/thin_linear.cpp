#include "ops/linears/thin_linear.h"

#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

constexpr int64_t kMostThin = 4, kThinPiece = 16;  // rows; bytes
// Values of a matrix. On an H200 libraries are as fast beyond, with four rows faster.
constexpr int64_t kMostThinWeight = int64_t{1} << 22;

TORCH_LIBRARY_FRAGMENT(lrnn, m) { m.def("thin_linear(Tensor x, Tensor weight) -> Tensor"); }

}  // namespace

bool is_thin(const Tensor& x, const Tensor& weight) {
  const auto type = x.scalar_type();
  const auto on_pieces = [](const Tensor& t) {
    return reinterpret_cast<uintptr_t>(t.const_data_ptr()) % kThinPiece == 0 && t.stride(1) == 1 &&
           (t.size(0) == 1 || t.stride(0) * t.element_size() % kThinPiece == 0);
  };
  return x.is_cuda() && (type == at::kFloat || type == at::kBFloat16) &&
         weight.scalar_type() == type && x.size(0) >= 1 && x.size(0) <= kMostThin &&
         weight.is_contiguous() && x.size(1) > 0 && weight.numel() <= kMostThinWeight &&
         x.size(1) * x.element_size() % kThinPiece == 0 && on_pieces(x) && on_pieces(weight);
}

Tensor thin_linear_definition(const Tensor& x, const Tensor& weight) {
  return at::mm(x, weight.t());
}

Tensor thin_linear(const Tensor& x, const Tensor& weight) {
  if (!is_thin(x, weight)) return thin_linear_definition(x, weight);
  static const auto op = find_op<Tensor(const Tensor&, const Tensor&)>("lrnn::thin_linear");
  return op.call(x, weight);
}

}  // namespace lrnn::ops
