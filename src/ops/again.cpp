#include "ops/again.h"

#include <ATen/TensorUtils.h>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

thread_local bool wanted = false;

// Whether x is `of`, maybe with its dimensions divided otherwise.
bool is_view_of(const Tensor& x, const Tensor& of) {
  if (x.storage_offset() != of.storage_offset() || x.numel() != of.numel()) return false;
  const auto strides = at::detail::computeStride(of.sizes(), of.strides(), x.sizes());
  return strides && x.strides() == at::IntArrayRef(*strides);
}

}  // namespace

MakeAgain::MakeAgain(bool on) : before_(wanted) { wanted = on; }
MakeAgain::~MakeAgain() { wanted = before_; }

Tensor MakesAgain::again(uint32_t output) {
  if (made_.empty()) made_ = below_autograd([&] { return make_again(); });
  return made_.at(output);
}

KeptInput::KeptInput(const Tensor& x) {
  if (wanted && x.defined() && x.requires_grad()) {
    const Tensor whole = x.is_view() ? Tensor(x._base()) : x;
    const auto node = whole.grad_fn();
    auto* const maker = dynamic_cast<MakesAgain*>(node.get());
    if (maker && maker->can_make_again() && is_view_of(x, whole)) {
      node_ = node, maker_ = maker, output_ = whole.output_nr();
      shape_ = x.sizes().vec();
      return;
    }
  }
  value_ = SavedVariable(x, false);
}

Tensor KeptInput::unpack() const {
  return maker_ ? maker_->again(output_).view(shape_) : value_.unpack();
}

}  // namespace lrnn::ops
