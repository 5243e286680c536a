#include <ATen/autocast_mode.h>

#include "kernels/cuda/rows/rows.h"
#include "ops/inner.h"
#include "ops/linears/linears.h"
#include "ops/node.h"
#include "ops/torch.h"

// A matrix per block of the channels, and its gradients.
namespace lrnn::ops {
namespace {

using BlockProduct = Tensor(const Tensor& x, const Tensor& weight, bool transposed);
using BlockGradient = Tensor(const Tensor& dy, const Tensor& x);

Tensor block_product(const Tensor& x, const Tensor& weight, bool transposed) {
  static const auto op = find_op<BlockProduct>("lrnn::block_product");
  return call_inner("block_linear", x.device(), op, x, weight, transposed);
}

Tensor block_gradient(const Tensor& dy, const Tensor& x) {
  static const auto op = find_op<BlockGradient>("lrnn::block_gradient");
  return call_inner("block_linear", x.device(), op, dy, x);
}

struct BlockLinearBackward final : torch::autograd::Node {
  SavedVariable x, weight;

  std::string name() const override { return "BlockLinearBackward"; }
  void release_variables() override { x.reset_data(), weight.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    std::lock_guard<std::mutex> lock(mutex_);
    check_last_derivative("block_linear", grad, " on a GPU");
    if (!grad[0].defined()) return {Tensor(), Tensor()};
    const Tensor input = x.unpack(), w = weight.unpack();
    return below_autograd([&]() -> variable_list {
      const Tensor dy = grad[0].contiguous().view({-1, w.size(0), w.size(1)}),
                   rows = input.contiguous().view({-1, w.size(0), w.size(2)});
      variable_list out(2);
      if (task_should_compute_output(0)) out[0] = block_product(dy, w, true).view(input.sizes());
      if (task_should_compute_output(1)) out[1] = block_gradient(dy, rows);
      return out;
    });
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("block_product(Tensor x, Tensor weight, bool transposed) -> Tensor");
  m.def("block_gradient(Tensor dy, Tensor x) -> Tensor");
}

}  // namespace

Tensor block_linear_definition(const Tensor& x, const Tensor& weight) {
  const int64_t blocks = weight.size(0), in = weight.size(2);
  const Tensor rows = x.reshape({-1, blocks, in}).transpose(0, 1);
  return torch::bmm(rows, weight.transpose(1, 2))
      .transpose(0, 1)
      .unflatten(0, x.sizes().slice(0, x.dim() - 1));
}

Tensor block_linear(const Tensor& x_, const Tensor& weight_) {
  const int64_t blocks = weight_.size(0), out = weight_.size(1), in = weight_.size(2);
  if (!x_.is_cuda() || std::max(in, out) > kernels::cuda::kMostBlockSide ||
      any_tangent(x_, weight_))
    return block_linear_definition(x_, weight_);
  Tensor x = x_, weight = weight_;
  if (const auto device = x.device().type(); at::autocast::is_autocast_enabled(device)) {
    const auto type = at::autocast::get_autocast_dtype(device);
    x = at::autocast::cached_cast(type, x, device);
    weight = at::autocast::cached_cast(type, weight, device);
  }
  const auto node = make_node<BlockLinearBackward>(x, weight);
  if (node) node->x = SavedVariable(x, false), node->weight = SavedVariable(weight, false);
  Tensor y = below_autograd([&] {
    std::vector<int64_t> shape = x.sizes().slice(0, x.dim() - 1).vec();
    shape.insert(shape.end(), {blocks, out});
    return block_product(x.contiguous().view({-1, blocks, in}), weight, false).view(shape);
  });
  if (node) torch::autograd::set_history(y, node);
  return y;
}

}  // namespace lrnn::ops
