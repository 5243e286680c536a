#include "ops/vmap.h"

#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/functorch/VmapInterpreter.h>

#include "ops/torch.h"

namespace lrnn::ops {

namespace functorch = at::functorch;

VmapLevel::VmapLevel() {
  const auto layer = functorch::maybeCurrentDynamicLayer();
  check(layer.has_value(), "a tensor of torch.func.vmap was used outside of it");
  level_ = layer->layerId();
  size_ = functorch::VmapInterpreterPtr(&layer->interpreter()).batchSize();
}

std::pair<Tensor, bool> VmapLevel::lower(const Tensor& x) const {
  const auto [below, dim] = functorch::unwrapTensorAtLevel(x, level_);
  return {dim ? below.movedim(*dim, 0) : below, dim.has_value()};
}

Tensor VmapLevel::raise(const Tensor& x) const { return functorch::makeBatched(x, 0, level_); }

Tensor VmapLevel::mark() const { return at::empty({0, level_}, at::kBool); }

bool VmapLevel::is_mark(const Tensor& x) const {
  return x.scalar_type() == at::kBool && x.dim() == 2 && x.sym_size(0) == 0 &&
         x.sym_size(1) == level_;
}

Tensor Fold::in(const Tensor& x, bool batched, const Field& field) const {
  if (!x.defined() || field.kind == Kind::kIndex || is_parameter(field)) return x;
  std::vector<c10::SymInt> sizes = {calls};
  const auto own = x.sym_sizes().slice(batched ? 1 : 0);
  sizes.insert(sizes.end(), own.begin(), own.end());
  const Tensor every = batched ? x : x.unsqueeze(0).expand_symint(sizes);
  if (field.shape[0] == '*') return every;
  // [calls,B,T,..] -> [calls B,T,..], or [calls,1,T,..] -> [1,calls T,..]
  const size_t into = packed && field.shape[0] == 'B' ? 2 : 1;
  sizes[into] = sizes[into] * calls;
  sizes.erase(sizes.begin());
  return every.reshape_symint(sizes);
}

Tensor Fold::out(const Tensor& x, const Field& field) const {
  if (field.shape[0] == '*') return x;
  const size_t from = packed && field.shape[0] == 'B' ? 1 : 0;
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes[from] = sizes[from] / calls;
  sizes.insert(sizes.begin(), calls);
  return x.reshape_symint(sizes);
}

std::vector<Tensor> stacked(const std::vector<std::vector<Tensor>>& calls, const VmapLevel& level) {
  std::vector<Tensor> out;
  for (size_t i = 0; !calls.empty() && i < calls[0].size(); ++i) {
    std::vector<Tensor> one;
    for (const auto& list : calls) one.push_back(list[i]);
    out.push_back(level.raise(at::stack(one)));
  }
  return out;
}

}  // namespace lrnn::ops
