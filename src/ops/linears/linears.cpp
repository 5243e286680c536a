#include "ops/linears/linears.h"

#include <algorithm>

#include "ops/cast_weights/cast_weights.h"
#include "ops/few_linear/few_linear.h"
#include "ops/join/join.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

Tensor as_matrix(const Tensor& x, int64_t D) {
  return x.dim() == 2 && x.size(1) == D ? x : x.reshape({-1, D});
}

// On a GPU weights that lie side by side are one matrix: a small product costs a launch, whatever
// its size. Rows of the results should lie on 16 bytes, so others stay alone.
using Group = std::vector<size_t>;  // numbers of weights
std::vector<Group> groups_of(const std::vector<Tensor>& weights) {
  std::vector<size_t> order(weights.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool gpu = weights[0].is_cuda();
  if (gpu)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::less<>()(weights[a].const_data_ptr(), weights[b].const_data_ptr());
    });
  std::vector<Group> out;
  for (const size_t i : order) {
    const bool follows = gpu && !out.empty() && weights[i].size(0) % 8 == 0 &&
                         weights[out.back()[0]].size(0) % 8 == 0 &&
                         side_by_side({weights[out.back().back()], weights[i]}, 0);
    if (follows)
      out.back().push_back(i);
    else
      out.push_back({i});
  }
  // Gradients are added up in the order of the arguments, wherever the weights lie.
  std::sort(out.begin(), out.end(), [](const Group& a, const Group& b) {
    return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
  });
  return out;
}

struct LinearsBackward final : torch::autograd::Node {
  SavedVariable x;
  std::vector<SavedVariable> weights;  // [outs[i],D]
  std::vector<int64_t> outs;
  std::vector<Group> groups;
  int64_t D = 0;
  bool again = false;  // the gradient is to be differentiated: it is made of torch's ops alone

  std::string name() const override { return "LinearsBackward"; }
  void release_variables() override {
    x.reset_data();
    for (auto& w : weights) w.reset_data();
  }
  variable_list apply(variable_list&& grad) override {
    std::lock_guard<std::mutex> lock(mutex_);
    again = differentiated_again(grad);
    return backward_call(grad, [&] { return gradients(grad); });
  }

 private:
  variable_list gradients(const variable_list& grad) {
    const Tensor input = x.unpack(), rows = as_matrix(input, D);
    variable_list out(1 + weights.size());
    for (const Group& group : groups) {
      std::vector<Tensor> dys, ws;
      std::vector<int64_t> sizes;
      bool wanted = false, any = false;
      for (const size_t i : group) {
        wanted = wanted || task_should_compute_output(1 + i), any = any || grad[i].defined();
        sizes.push_back(outs[i]), ws.push_back(weights[i].unpack());
      }
      if (!any) continue;
      if (wanted && group.size() == 1 && task_should_compute_output(0) && few(rows, ws[0])) {
        const size_t i = group[0];
        const bool add = out[0].defined();
        Tensor dx = add ? as_matrix(out[0], D) : at::empty(rows.sizes(), rows.options());
        out[1 + i] = few_linear_backward(as_matrix(grad[i], outs[i]), rows, ws[0], dx, add);
        out[0] = dx;
        continue;
      }
      for (const size_t i : group)
        dys.push_back(grad[i].defined() ? as_matrix(grad[i], outs[i])
                                        : at::zeros({rows.size(0), outs[i]}, rows.options()));
      const Tensor dy = together(dys, 1);
      if (task_should_compute_output(0)) {
        const Tensor w = together(ws, 0);
        out[0] = out[0].defined() ? add_product(out[0], dy, w) : at::mm(dy, w);
      }
      if (!wanted) continue;
      const Tensor dw = at::mm(dy.t(), rows);
      const auto each = group.size() == 1 ? variable_list{dw} : pieces(dw, sizes, 0);
      for (size_t j = 0; j < group.size(); ++j)
        if (grad[group[j]].defined() && task_should_compute_output(1 + group[j]))
          out[1 + group[j]] = each[j];
    }
    if (out[0].defined() && out[0].sizes() != input.sizes()) out[0] = out[0].view(input.sizes());
    return out;
  }
  bool few(const Tensor& rows, const Tensor& weight) const {
    return !again && has_few_rows(rows, weight);
  }
  Tensor add_product(Tensor& dx, const Tensor& dy, const Tensor& w) const {
    return again ? at::addmm(dx, dy, w) : dx.addmm_(dy, w);
  }
  // A view of what lies side by side has the derivative of its first part alone.
  Tensor together(const std::vector<Tensor>& parts, int64_t dim) const {
    return again ? at::cat(parts, dim) : joined(parts, dim);
  }
};

}  // namespace

std::vector<Tensor> linears_definition(const Tensor& x, const std::vector<Tensor>& weights) {
  std::vector<Tensor> out;
  for (const Tensor& w : weights) out.push_back(at::linear(x, w));
  return out;
}

std::vector<Tensor> linears(const Tensor& x_, std::vector<Tensor> weights, const Shapes& shapes) {
  const Tensor x = for_product(x_);
  for (auto& w : weights) w = for_product(w);
  const int64_t D = weights.at(0).size(1);
  if (any_tangent(x, weights)) {
    auto out = linears_definition(as_matrix(x, D), weights);
    for (size_t i = 0; i < out.size(); ++i) out[i] = out[i].view(shapes[i]);
    return out;
  }
  const auto groups = groups_of(weights);
  std::shared_ptr<LinearsBackward> node;
  if (torch::autograd::compute_requires_grad(x, weights)) {
    node.reset(new LinearsBackward, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(x, weights));
    node->x = SavedVariable(x, false);
    node->D = D, node->groups = groups;
    for (const auto& w : weights)
      node->weights.emplace_back(w, false), node->outs.push_back(w.size(0));
  }
  std::vector<Tensor> out(weights.size());
  below_autograd([&] {
    const Tensor rows = as_matrix(x, D);
    for (const Group& group : groups) {
      std::vector<Tensor> ws;
      for (const size_t i : group) ws.push_back(weights[i]);
      const Tensor y = group.size() == 1 && has_few_rows(rows, ws[0])
                           ? few_linear(rows, ws[0])
                           : at::mm(rows, joined(ws, 0).t());
      int64_t at = 0;
      for (const size_t i : group) {
        const int64_t size = weights[i].size(0);
        const Tensor own = group.size() == 1 ? y : y.narrow(1, at, size);
        out[i] = own.sizes() == at::IntArrayRef(shapes[i]) ? own : at::_unsafe_view(own, shapes[i]);
        at += size;
      }
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
