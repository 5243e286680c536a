#include "ops/wide_sigmoid/wide_sigmoid.h"

#include "ops/inner.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

Tensor forward_cpu(const Tensor& x, double scale) {
  return at::sigmoid(x).to(wide_type(x)).mul_(scale);
}
Tensor backward_cpu(const Tensor& dy, const Tensor& x, double scale) {
  return at::sigmoid_backward(dy, at::sigmoid(x).to(wide_type(x))).mul_(scale).to(x.scalar_type());
}

struct WideSigmoidBackward final : torch::autograd::Node {
  SavedVariable x;
  double scale = 1;
  std::string name() const override { return "WideSigmoidBackward"; }
  void release_variables() override { x.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    check_last_derivative("wide_sigmoid", grad);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return {Tensor()};
    static const auto op = find_op<decltype(backward_cpu)>("lrnn::wide_sigmoid_backward");
    const Tensor in = x.unpack();
    return {below_autograd(
        [&] { return call_inner("wide_sigmoid", in.device(), op, grad[0], in, scale); })};
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("wide_sigmoid(Tensor x, float scale) -> Tensor");
  m.def("wide_sigmoid_backward(Tensor dy, Tensor x, float scale) -> Tensor");
}
TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("wide_sigmoid", forward_cpu);
  m.impl("wide_sigmoid_backward", backward_cpu);
}

}  // namespace

Tensor wide_sigmoid(const Tensor& x, double scale) {
  if (has_tangent(x)) return at::sigmoid(x).to(wide_type(x)) * scale;
  static const auto op = find_op<decltype(forward_cpu)>("lrnn::wide_sigmoid");
  const auto node = make_node<WideSigmoidBackward>(x);
  if (node) node->x = SavedVariable(x, false), node->scale = scale;
  Tensor y = below_autograd([&] { return call_inner("wide_sigmoid", x.device(), op, x, scale); });
  if (node) torch::autograd::set_history(y, node);
  return y;
}

}  // namespace lrnn::ops
