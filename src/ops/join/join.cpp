#include "ops/join/join.h"

#include "base/error.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

struct JoinBackward final : torch::autograd::Node {
  std::vector<int64_t> sizes;
  std::string name() const override { return "JoinBackward"; }
  variable_list apply(variable_list&& grad) override {
    if (!grad[0].defined()) return variable_list(sizes.size());
    return pieces(grad[0], sizes, 0);
  }
};

struct SplitBackward final : torch::autograd::Node {
  std::vector<std::vector<int64_t>> shapes;
  torch::TensorOptions options;
  int64_t dim = 0;
  std::string name() const override { return "SplitBackward"; }
  variable_list apply(variable_list&& grad) override {
    for (size_t i = 0; i < shapes.size(); ++i)
      if (!grad[i].defined()) grad[i] = at::zeros(shapes[i], options);
    if (differentiated_again(grad)) return {at::cat(grad, dim)};
    return {below_autograd([&] { return at::cat(grad, dim); })};
  }
};

}  // namespace

std::vector<Tensor> pieces(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  std::vector<Tensor> out;
  int64_t at = 0;
  for (const int64_t size : sizes) out.push_back(x.narrow(dim, at, size)), at += size;
  check(at == x.size(dim), "[split] pieces of ", at, " do not make up ", x.size(dim));
  return out;
}

Tensor join_definition(const std::vector<Tensor>& parts, int64_t dim) {
  return at::cat(parts, dim);
}
std::vector<Tensor> split_definition(const Tensor& x, const std::vector<int64_t>& sizes,
                                     int64_t dim) {
  return at::split_with_sizes(x, sizes, dim);
}

Tensor join(const WeightStack::Ready& stack) {
  if (!stack.whole.defined() || has_tangent(stack.parts)) return at::cat(stack.parts, 0);
  std::shared_ptr<JoinBackward> node;
  if (torch::autograd::compute_requires_grad(stack.parts)) {
    node.reset(new JoinBackward, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(stack.parts));
    for (const auto& part : stack.parts) node->sizes.push_back(part.size(0));
  }
  const Tensor out = stack.whole.detach();
  if (node) torch::autograd::set_history(out, node);
  return out;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  if (sizes.size() == 1) return {x};
  if (has_tangent(x)) return pieces(x, sizes, dim);
  auto out = below_autograd([&] { return pieces(x, sizes, dim); });
  const auto node = make_node<SplitBackward>(x);
  if (!node) return out;
  for (const auto& piece : out) node->shapes.push_back(piece.sizes().vec());
  node->options = x.options().requires_grad(false), node->dim = dim;
  torch::autograd::set_history(out, node);
  return out;
}

}  // namespace lrnn::ops
