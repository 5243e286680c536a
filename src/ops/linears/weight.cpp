#include "ops/linears/weight.h"

#include <ATen/autocast_mode.h>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

torch::Dtype product_type_of(const torch::Tensor& x) {
  const auto device = x.device().type();
  return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                   : x.scalar_type();
}

// The whole of values or of copies, where all parts are those.
torch::Tensor whole_of(const WeightStack& stack, const std::vector<torch::Tensor>& parts) {
  const auto all = [&](const torch::Tensor Weight::*which) {
    for (size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].is_same(stack.parts[i].*which)) return false;
    return true;
  };
  if (all(&Weight::value)) return stack.whole;
  return all(&Weight::copy) ? stack.whole_copy : torch::Tensor();
}

}  // namespace

Weight::Weight(torch::Tensor value, torch::Tensor copy)
    : value(std::move(value)), copy(std::move(copy)) {}

torch::Tensor Weight::in(torch::Dtype dtype) const {
  return copy.defined() && copy.scalar_type() == dtype ? copy : value.to(dtype);
}

torch::Tensor Weight::for_product() const {
  const auto dtype = product_type_of(value);
  return copy.defined() && copy.scalar_type() == dtype ? copy : ops::for_product(value);
}

Weight Weight::rows(int64_t begin, int64_t count) const {
  return {value.narrow(0, begin, count), copy.defined() ? copy.narrow(0, begin, count) : copy};
}

WeightStack::Ready WeightStack::in(torch::Dtype dtype) const {
  Ready out;
  for (const Weight& w : parts) out.parts.push_back(w.in(dtype));
  out.whole = whole_of(*this, out.parts);
  return out;
}

WeightStack::Ready WeightStack::for_product() const {
  Ready out;
  for (const Weight& w : parts) out.parts.push_back(w.for_product());
  out.whole = whole_of(*this, out.parts);
  return out;
}

torch::Tensor for_product(const torch::Tensor& x) {
  const auto device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) return x;
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), x, device);
}

}  // namespace lrnn::ops
