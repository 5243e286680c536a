#include "ops/linears.h"

#include <ATen/autocast_mode.h>

#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

Tensor as_matrix(const Tensor& x, int64_t D) {
  return x.dim() == 2 && x.size(1) == D ? x : x.reshape({-1, D});
}

struct LinearsBackward final : torch::autograd::Node {
  SavedVariable x;
  std::vector<SavedVariable> weights;  // [outs[i],D]
  std::vector<int64_t> outs;
  int64_t D = 0;

  std::string name() const override { return "LinearsBackward"; }
  void release_variables() override {
    x.reset_data();
    for (auto& w : weights) w.reset_data();
  }
  variable_list apply(variable_list&& grad) override {
    std::lock_guard<std::mutex> lock(mutex_);
    return backward_call([&] { return gradients(grad); });
  }

 private:
  variable_list gradients(const variable_list& grad) {
    const Tensor input = x.unpack(), rows = as_matrix(input, D);
    variable_list out(1 + weights.size());
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!grad[i].defined()) continue;
      const Tensor dy = as_matrix(grad[i], outs[i]);
      if (task_should_compute_output(0)) {
        const Tensor w = weights[i].unpack();
        out[0] = out[0].defined() ? add_product(out[0], dy, w) : at::mm(dy, w);
      }
      if (task_should_compute_output(1 + i)) out[1 + i] = at::mm(dy.t(), rows);
    }
    if (out[0].defined() && out[0].sizes() != input.sizes()) out[0] = out[0].view(input.sizes());
    return out;
  }
  // In place, unless a graph of the gradient is being made.
  static Tensor add_product(Tensor& dx, const Tensor& dy, const Tensor& w) {
    return at::GradMode::is_enabled() ? at::addmm(dx, dy, w) : dx.addmm_(dy, w);
  }
};

Tensor cast(const Tensor& x, c10::DeviceType device) {
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), x, device);
}

}  // namespace

std::vector<Tensor> linears(const Tensor& x_, std::vector<Tensor> weights, const Shapes& shapes) {
  Tensor x = x_;
  if (const auto device = x.device().type(); at::autocast::is_autocast_enabled(device)) {
    x = cast(x, device);
    for (auto& w : weights) w = cast(w, device);
  }
  const int64_t D = weights.at(0).size(1);
  std::shared_ptr<LinearsBackward> node;
  if (torch::autograd::compute_requires_grad(x, weights)) {
    node.reset(new LinearsBackward, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(x, weights));
    node->x = SavedVariable(x, false);
    node->D = D;
    for (const auto& w : weights)
      node->weights.emplace_back(w, false), node->outs.push_back(w.size(0));
  }
  std::vector<Tensor> out;
  out.reserve(weights.size());
  below_autograd([&] {
    const Tensor rows = as_matrix(x, D);
    for (size_t i = 0; i < weights.size(); ++i) {
      const Tensor y = at::mm(rows, weights[i].t());
      out.push_back(y.sizes() == at::IntArrayRef(shapes[i]) ? y : at::_unsafe_view(y, shapes[i]));
    }
  });
  if (node) torch::autograd::set_history(out, node);
  return out;
}

std::vector<Tensor> linears(const Tensor& x, std::vector<Tensor> weights) {
  Shapes shapes(weights.size(), x.sizes().vec());
  for (size_t i = 0; i < weights.size(); ++i) shapes[i].back() = weights[i].size(0);
  return linears(x, std::move(weights), shapes);
}

Tensor linear(const Tensor& x, const Tensor& weight) { return linears(x, {weight})[0]; }

}  // namespace lrnn::ops
