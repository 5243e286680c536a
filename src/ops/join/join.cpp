#include "ops/join/join.h"

#include "base/error.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

std::vector<int64_t> sizes_along(const std::vector<Tensor>& parts, int64_t dim) {
  std::vector<int64_t> out;
  for (const auto& x : parts) out.push_back(x.size(dim));
  return out;
}

struct JoinBackward final : torch::autograd::Node {
  std::vector<int64_t> sizes;
  int64_t dim = 0;
  std::string name() const override { return "JoinBackward"; }
  variable_list apply(variable_list&& grad) override {
    if (!grad[0].defined()) return variable_list(sizes.size());
    return pieces(grad[0], sizes, dim);
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
    return {below_autograd([&] { return joined(grad, dim); })};
  }
};

}  // namespace

bool side_by_side(const std::vector<Tensor>& parts, int64_t dim) {
  const Tensor& a = parts.at(0);
  if (dim < 0) dim += a.dim();
  int64_t total = 0;
  const char* next = static_cast<const char*>(a.const_data_ptr());
  for (const Tensor& x : parts) {
    if (x.dim() != a.dim() || x.scalar_type() != a.scalar_type() || x.device() != a.device() ||
        !x.storage().is_alias_of(a.storage()) || x.const_data_ptr() != next)
      return false;
    for (int64_t d = 0; d < a.dim(); ++d)
      if (x.stride(d) != a.stride(d) || (d != dim && x.size(d) != a.size(d))) return false;
    total += x.size(dim);
    next += x.size(dim) * x.stride(dim) * int64_t(x.element_size());
  }
  // What lies outside must leave room for all of them.
  for (int64_t d = 0; d < dim; ++d)
    if (a.size(d) > 1 && a.stride(d) < total * a.stride(dim)) return false;
  return a.numel() > 0;
}

Tensor joined(const std::vector<Tensor>& parts, int64_t dim) {
  if (parts.size() == 1) return parts[0];
  if (!side_by_side(parts, dim)) return at::cat(parts, dim);
  auto sizes = parts[0].sizes().vec();
  int64_t& along = sizes[size_t(dim < 0 ? dim + parts[0].dim() : dim)];
  along = 0;
  for (const auto& x : parts) along += x.size(dim);
  return parts[0].as_strided(sizes, parts[0].strides());
}

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

Tensor join(const std::vector<Tensor>& parts, int64_t dim) {
  if (has_tangent(parts)) return join_definition(parts, dim);
  std::shared_ptr<JoinBackward> node;
  if (torch::autograd::compute_requires_grad(parts)) {
    node.reset(new JoinBackward, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(parts));
    node->sizes = sizes_along(parts, dim), node->dim = dim;
  }
  Tensor out = below_autograd([&] { return joined(parts, dim); });
  if (out.is_same(parts[0])) out = out.detach();
  if (node) torch::autograd::set_history(out, node);
  return out;
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
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
