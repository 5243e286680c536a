#include "model/held_state.h"

namespace lrnn::model {
namespace {

std::vector<Tensor> flat(const State& state) {
  std::vector<Tensor> out;
  for (const auto& block : state)
    for (const auto& x : block)
      if (x.defined()) out.push_back(x);
  return out;
}

bool same_shapes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].sizes() != b[i].sizes() || a[i].scalar_type() != b[i].scalar_type()) return false;
  return true;
}

// Those that lie alike are copied by few kernels; one that does not would have each have its own.
void copy_each(const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  std::vector<Tensor> alike_to, alike_from;
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i].is_contiguous() && from[i].is_contiguous())
      alike_to.push_back(to[i]), alike_from.push_back(from[i]);
    else
      to[i].copy_(from[i]);
  if (!alike_to.empty()) at::_foreach_copy_(alike_to, alike_from);
}

}  // namespace

bool HeldState::keep(const State& state) {
  if (same_shapes(flat(state_), flat(state))) return copy_each(flat(state_), flat(state)), true;
  state_ = state;
  for (auto& block : state_)
    for (auto& x : block)
      if (x.defined()) x = x.clone();
  return false;
}

std::vector<Tensor> HeldState::copies() const {
  std::vector<Tensor> out;
  for (const auto& x : flat(state_)) out.push_back(x.clone());
  return out;
}

void HeldState::put_back(const std::vector<Tensor>& copies) { copy_each(flat(state_), copies); }

}  // namespace lrnn::model
