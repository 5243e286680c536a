#include "ops/cast_weights/cast_weights.h"

#include <ATen/autocast_mode.h>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

thread_local const CastWeights::Copies* in_use = nullptr;

}  // namespace

CastWeights::CastWeights(const Copies& copies) : before_(in_use) { in_use = &copies; }
CastWeights::~CastWeights() { in_use = before_; }

torch::Tensor cast_weight(const torch::Tensor& weight, torch::Dtype dtype) {
  if (!in_use) return {};
  const auto found = in_use->find(weight.unsafeGetTensorImpl());
  if (found == in_use->end() || found->second.scalar_type() != dtype) return {};
  return found->second;
}

torch::Tensor weight_in(const torch::Tensor& weight, torch::Dtype dtype) {
  const auto copy = cast_weight(weight, dtype);
  return copy.defined() ? copy : weight.to(dtype);
}

torch::Tensor for_product(const torch::Tensor& x) {
  const auto device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) return x;
  const auto dtype = at::autocast::get_autocast_dtype(device);
  const auto copy = cast_weight(x, dtype);
  return copy.defined() ? copy : at::autocast::cached_cast(dtype, x, device);
}

}  // namespace lrnn::ops
