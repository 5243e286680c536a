#include "ops/node.h"
#include "ops/pointwise/pointwise.h"
#include "ops/rows.h"

namespace lrnn::ops {
namespace {

using kernels::rows::Norm;
using kernels::rows::Real;
using kernels::rows::table;

template <class Io>
Norm<Io> arguments(const RowView& in, const Tensor& weight, bool mean, double eps) {
  return {in.data<Io>(),
          in.stride,
          weight.defined() ? weight.const_data_ptr<Real<Io>>() : nullptr,
          mean ? 1 / double(in.D) : 1,
          eps,
          in.D};
}

Tensor norm(const char* op, const Tensor& x, const Tensor& weight, bool mean, double eps) {
  return with_element(op, x.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    Tensor y = unfilled(x);
    const RowView in = row_view(x);
    const Tensor w =
        weight.defined() ? weight.to(computed_in(x.scalar_type())).contiguous() : weight;
    const Norm<Io> a = arguments<Io>(in, w, mean, eps);
    Io* out = static_cast<Io*>(y.mutable_data_ptr());
    Ranges(in.rows, in.D).each([&](int64_t, int64_t first, int64_t last) {
      table<Io>().norm(a, first, last, out);
    });
    return y;
  });
}

std::tuple<Tensor, Tensor> norm_backward(const char* op, const Tensor& dy, const Tensor& x,
                                         const Tensor& weight, bool mean, double eps) {
  check_gradient(op, dy, x);
  return with_element(op, x.scalar_type(), [&](auto element) -> std::tuple<Tensor, Tensor> {
    using Io = decltype(element);
    using R = Real<Io>;
    Tensor dx = unfilled(x);
    const RowView in = row_view(x), grad = row_view(dy);
    const auto real = computed_in(x.scalar_type());
    const Tensor w = weight.defined() ? weight.to(real).contiguous() : weight;
    const Norm<Io> a = arguments<Io>(in, w, mean, eps);
    const Ranges ranges(in.rows, in.D);
    Tensor partial;
    if (w.defined())
      partial = at::zeros({std::max<int64_t>(1, ranges.count()), in.D}, x.options().dtype(real));
    R* sums = w.defined() ? partial.mutable_data_ptr<R>() : nullptr;
    Io* out = static_cast<Io*>(dx.mutable_data_ptr());
    ranges.each([&](int64_t i, int64_t first, int64_t last) {
      table<Io>().norm_backward(a, first, last, grad.data<Io>(), grad.stride, out,
                                sums ? sums + i * in.D : nullptr);
    });
    if (!w.defined()) return {dx, {}};
    return {dx, add_up(partial).to(weight.scalar_type())};
  });
}

void check_norm(const char* op, const Tensor& x, const Tensor& weight) {
  check(x.dim() >= 1, "[", op, "] x must have at least one dimension");
  if (!weight.defined()) return;
  check(weight.dim() == 1 && weight.sym_size(0) == x.sym_size(-1), "[", op, "] weight must be [",
        x.sym_size(-1), "] as the rows of x are, got ", weight.sym_sizes());
  check_parameter(op, "weight", weight, x);
}

Tensor rms_norm_cpu(const Tensor& x, const Tensor& weight, double eps) {
  check_norm("rms_norm", x, weight);
  return norm("rms_norm", x, weight, true, eps);
}
std::tuple<Tensor, Tensor> rms_norm_backward_cpu(const Tensor& dy, const Tensor& x,
                                                 const Tensor& weight, double eps) {
  return norm_backward("rms_norm", dy, x, weight, true, eps);
}
Tensor l2_norm_cpu(const Tensor& x, double eps) {
  check_norm("l2_norm", x, {});
  return norm("l2_norm", x, {}, false, eps);
}
Tensor l2_norm_backward_cpu(const Tensor& dy, const Tensor& x, double eps) {
  return std::get<0>(norm_backward("l2_norm", dy, x, {}, false, eps));
}

Tensor call_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  static const auto op = find_op<decltype(rms_norm_cpu)>("lrnn::rms_norm");
  return op.call(x, weight, eps);
}
Tensor call_l2_norm(const Tensor& x, double eps) {
  static const auto op = find_op<decltype(l2_norm_cpu)>("lrnn::l2_norm");
  return op.call(x, eps);
}

struct RmsNormBackward final : torch::autograd::Node {
  SavedVariable x, weight;
  double eps = 0;
  std::string name() const override { return "RmsNormBackward"; }
  void release_variables() override { x.reset_data(), weight.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    static const auto op = find_op<decltype(rms_norm_backward_cpu)>("lrnn::rms_norm_backward");
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return {Tensor(), Tensor()};
    auto [dx, dw] =
        backward_call(grad, [&] { return op.call(grad[0], x.unpack(), weight.unpack(), eps); });
    return {dx, dw};
  }
};

struct L2NormBackward final : torch::autograd::Node {
  SavedVariable x;
  double eps = 0;
  std::string name() const override { return "L2NormBackward"; }
  void release_variables() override { x.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    static const auto op = find_op<decltype(l2_norm_backward_cpu)>("lrnn::l2_norm_backward");
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return {Tensor()};
    return {backward_call(grad, [&] { return op.call(grad[0], x.unpack(), eps); })};
  }
};

Tensor rms_norm_autograd(const Tensor& x, const Tensor& weight, double eps) {
  if (any_tangent(x, weight)) {
    check_norm("rms_norm", x, weight);
    return rms_norm_definition(x, weight, eps);
  }
  const auto node = make_node<RmsNormBackward>(x, weight);
  if (node) {
    node->x = SavedVariable(x, false), node->weight = SavedVariable(weight, false);
    node->eps = eps;
  }
  Tensor y = below_autograd([&] { return call_rms_norm(x, weight, eps); });
  if (node) torch::autograd::set_history(y, node);
  return y;
}

Tensor l2_norm_autograd(const Tensor& x, double eps) {
  if (has_tangent(x)) {
    check_norm("l2_norm", x, {});
    return l2_norm_definition(x, eps);
  }
  const auto node = make_node<L2NormBackward>(x);
  if (node) node->x = SavedVariable(x, false), node->eps = eps;
  Tensor y = below_autograd([&] { return call_l2_norm(x, eps); });
  if (node) torch::autograd::set_history(y, node);
  return y;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
  m.def("rms_norm_backward(Tensor dy, Tensor x, Tensor weight, float eps) -> (Tensor, Tensor)");
  m.def("l2_norm(Tensor x, float eps) -> Tensor");
  m.def("l2_norm_backward(Tensor dy, Tensor x, float eps) -> Tensor");
}
TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("rms_norm", rms_norm_cpu);
  m.impl("rms_norm_backward", rms_norm_backward_cpu);
  m.impl("l2_norm", l2_norm_cpu);
  m.impl("l2_norm_backward", l2_norm_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("rms_norm", [](const Tensor& x, const Tensor& weight, double) {
    check_norm("rms_norm", x, weight);
    return unfilled(x);
  });
  m.impl("rms_norm_backward", [](const Tensor&, const Tensor& x, const Tensor& weight, double) {
    return std::tuple(unfilled(x), unfilled(weight));
  });
  m.impl("l2_norm", [](const Tensor& x, double) {
    check_norm("l2_norm", x, {});
    return unfilled(x);
  });
  m.impl("l2_norm_backward", [](const Tensor&, const Tensor& x, double) { return unfilled(x); });
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) {
  m.impl("rms_norm", rms_norm_autograd);
  m.impl("l2_norm", l2_norm_autograd);
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return call_rms_norm(x, weight, eps);
}
Tensor l2_norm(const Tensor& x, double eps) { return call_l2_norm(x, eps); }

}  // namespace lrnn::ops
