#include "ops/linears/linears.h"

#include <algorithm>

#include "base/error.h"
#include "ops/again.h"
#include "ops/inner.h"
#include "ops/join/join.h"
#include "ops/linears/few_linear.h"
#include "ops/linears/thin_linear.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

Tensor as_matrix(const Tensor& x, int64_t D) {
  return x.dim() == 2 && x.size(1) == D ? x : x.reshape({-1, D});
}

// Weights of one product, and their memory as one where it is.
struct Group {
  std::vector<size_t> which;
  Tensor whole;
};

// Below autograd.
Tensor matrix_of(const Group& group, const std::vector<Tensor>& weights) {
  if (group.whole.defined()) return group.whole;
  if (group.which.size() == 1) return weights[group.which[0]];
  std::vector<Tensor> parts;
  for (const size_t i : group.which) parts.push_back(weights[i]);
  return at::cat(parts, 0);
}

struct LinearsBackward final : torch::autograd::Node {
  KeptInput x;
  std::vector<SavedVariable> weights;  // [outs[i],D]
  std::vector<int64_t> outs;
  std::vector<Group> groups;  // each has one result
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
    if (x.is_made_again()) check_last_derivative("linears", grad, " where inputs are made again");
    return backward_call(grad, [&] { return gradients(grad); });
  }

 private:
  variable_list gradients(const variable_list& grad) {
    const Tensor input = x.unpack(), rows = as_matrix(input, D);
    std::vector<Tensor> ws;
    for (auto& w : weights) ws.push_back(w.unpack());
    variable_list out(1 + weights.size());
    for (size_t g = 0; g < groups.size(); ++g) {
      if (!grad[g].defined()) continue;
      const Group& group = groups[g];
      std::vector<int64_t> sizes;
      int64_t total = 0;
      bool wanted = false;
      for (const size_t i : group.which) {
        wanted = wanted || task_should_compute_output(1 + i);
        sizes.push_back(outs[i]), total += outs[i];
      }
      const Tensor dy = as_matrix(grad[g], total);
      const size_t first = group.which[0];
      if (wanted && group.which.size() == 1 && task_should_compute_output(0) &&
          few(rows, ws[first])) {
        const bool add = out[0].defined();
        Tensor dx = add ? as_matrix(out[0], D) : at::empty(rows.sizes(), rows.options());
        out[1 + first] = few_linear_backward(dy, rows, ws[first], dx, add);
        out[0] = dx;
        continue;
      }
      if (task_should_compute_output(0)) {
        // The whole has no derivative; its parts have.
        const Tensor w = matrix_of(again ? Group{group.which, {}} : group, ws);
        out[0] = out[0].defined() ? add_product(out[0], dy, w) : at::mm(dy, w);
      }
      if (!wanted) continue;
      const Tensor dw = at::mm(dy.t(), rows);
      const auto each = group.which.size() == 1 ? variable_list{dw} : pieces(dw, sizes, 0);
      for (size_t j = 0; j < group.which.size(); ++j)
        if (task_should_compute_output(1 + group.which[j])) out[1 + group.which[j]] = each[j];
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
};

// A result of each group, of these shapes.
std::vector<Tensor> products(const Tensor& x, const std::vector<Tensor>& weights,
                             const std::vector<Group>& groups, const Shapes& shapes) {
  const int64_t D = weights.at(0).size(1);
  std::vector<Tensor> out(groups.size());
  if (any_tangent(x, weights)) {
    for (size_t g = 0; g < groups.size(); ++g) {
      const Tensor w = matrix_of({groups[g].which, {}}, weights);
      out[g] = at::linear(as_matrix(x, D), w).view(shapes[g]);
    }
    return out;
  }
  std::shared_ptr<LinearsBackward> node;
  if (torch::autograd::compute_requires_grad(x, weights)) {
    node.reset(new LinearsBackward, torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(x, weights));
    node->x = KeptInput(x);
    node->D = D, node->groups = groups;
    for (const auto& w : weights)
      node->weights.emplace_back(w, false), node->outs.push_back(w.size(0));
  }
  // Where something is learnt the products stay those of more rows.
  const auto product = [learns = bool(node)](const Tensor& rows, const Tensor& w, bool alone) {
    if (alone && has_few_rows(rows, w)) return few_linear(rows, w);
    return learns ? at::mm(rows, w.t()) : thin_linear(rows, w);
  };
  below_autograd([&] {
    const Tensor rows = as_matrix(x, D);
    for (size_t g = 0; g < groups.size(); ++g) {
      const Tensor w = matrix_of(groups[g], weights);
      const Tensor y = product(rows, w, groups[g].which.size() == 1);
      out[g] = y.sizes() == at::IntArrayRef(shapes[g]) ? y : at::_unsafe_view(y, shapes[g]);
    }
  });
  if (node) torch::autograd::set_history(out, node);
  return out;
}

std::vector<int64_t> with_last(const Tensor& x, int64_t size) {
  auto out = x.sizes().vec();
  out.back() = size;
  return out;
}

}  // namespace

bool better_as_one(const Tensor& x, const std::vector<int64_t>& outs) {
  return x.is_cuda() && outs.size() > 1 &&
         std::all_of(outs.begin(), outs.end(), [](int64_t out) { return out % 8 == 0; });
}

std::vector<Tensor> linears_definition(const Tensor& x, const std::vector<Tensor>& weights) {
  std::vector<Tensor> out;
  for (const Tensor& w : weights) out.push_back(at::linear(x, w));
  return out;
}

Products linears(const Tensor& x, const std::vector<Weight>& weights, const Shapes& shapes,
                 const Joint& joint) {
  WeightStack stack{{}, joint.whole, joint.whole_copy};
  std::vector<int64_t> outs;
  int64_t total = 0;
  for (const size_t i : joint.which)
    outs.push_back(weights.at(i).value.size(0)), total += outs.back();
  const bool one = better_as_one(x, outs);
  if (one)
    for (const size_t i : joint.which) stack.parts.push_back(weights[i]);
  std::vector<Tensor> ready;
  for (const Weight& w : weights) ready.push_back(w.for_product());
  std::vector<Group> groups;
  Shapes of_groups;
  const auto is_joint = [&](size_t i) {
    return one && std::find(joint.which.begin(), joint.which.end(), i) != joint.which.end();
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!is_joint(i)) {
      groups.push_back({{i}, {}}), of_groups.push_back(shapes[i]);
    } else if (i == joint.which[0]) {
      groups.push_back({joint.which, stack.for_product().whole});
      of_groups.push_back(with_last(x, total));
    }
  }
  const auto made = products(for_product(x), ready, groups, of_groups);
  Products out{std::vector<Tensor>(weights.size()), {}};
  for (size_t g = 0; g < groups.size(); ++g)
    (groups[g].which.size() > 1 ? out.joint : out.each[groups[g].which[0]]) = made[g];
  return out;
}

std::vector<Tensor> linears(const Tensor& x, const std::vector<Weight>& weights,
                            const Shapes& shapes) {
  return linears(x, weights, shapes, {}).each;
}

std::vector<Tensor> linears(const Tensor& x, const std::vector<Weight>& weights) {
  Shapes shapes;
  for (const Weight& w : weights) shapes.push_back(with_last(x, w.value.size(0)));
  return linears(x, weights, shapes);
}

Tensor linear(const Tensor& x, const Weight& weight) {
  return products(for_product(x), {weight.for_product()}, {{{0}, {}}},
                  {with_last(x, weight.value.size(0))})[0];
}

std::vector<Tensor> linears(const Tensor& x, const WeightStack& stack) {
  std::vector<int64_t> outs;
  for (const Weight& w : stack.parts) outs.push_back(w.value.size(0));
  if (!better_as_one(x, outs)) return linears(x, stack.parts);
  return ops::split(ops::linear(x, stack), outs, -1);
}

Tensor linear(const Tensor& x, const WeightStack& stack) {
  const auto ready = stack.for_product();
  Group group{{}, ready.whole};
  int64_t total = 0;
  for (size_t i = 0; i < ready.parts.size(); ++i)
    group.which.push_back(i), total += ready.parts[i].size(0);
  return products(for_product(x), ready.parts, {group}, {with_last(x, total)})[0];
}

Tensor wide_matmul_definition(const Tensor& a, const Tensor& b) { return at::matmul(a, b); }

Tensor wide_matmul(const Tensor& a, const Tensor& b) {
  const auto no_autocast = without_autocast();
  return at::matmul(a, b);
}

}  // namespace lrnn::ops
