#include "ops/declare.h"
#include "ops/join/join.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"

namespace lrnn::ops {
namespace {

// The channels that become units, head by head: [B,T,units / group,group].
Tensor heads(const Tensor& y, int64_t units, int64_t group) {
  return y.narrow(2, 0, units).unflatten(2, {units / group, group});
}

struct UnitConvBackward final : torch::autograd::Node, MakesAgain {
  SavedVariable x, weight, state;
  std::vector<int64_t> sizes;
  int64_t units = 0, group = 1;
  double eps = 0;
  std::string name() const override { return "UnitConvBackward"; }
  void release_variables() override {
    for (auto* saved : {&x, &weight, &state}) saved->reset_data();
    forget_made();
  }
  variable_list apply(variable_list&& grad) override {
    static const auto op =
        find_op<decltype(unit_conv_backward_in_steps)>("lrnn::unit_conv_backward");
    std::lock_guard<std::mutex> lock(mutex_);
    bool any = false;
    for (const auto& piece : grad) any |= piece.defined();
    if (!any) return variable_list(2);
    const Tensor in = x.unpack();
    for (size_t i = 0; i < sizes.size(); ++i)
      if (!grad[i].defined()) grad[i] = at::zeros({in.size(0), in.size(1), sizes[i]}, in.options());
    auto [dx, dweight] = backward_call(grad, [&] {
      const at::TensorList dy = at::TensorList(grad).slice(0, sizes.size());
      return op.call(dy, maybe(grad.back()), in, weight.unpack(), maybe(state.unpack()), units,
                     group, eps);
    });
    return {dx, dweight};
  }

 protected:
  std::vector<Tensor> make_again() override {
    static const auto op = find_op<decltype(unit_conv_in_steps)>("lrnn::unit_conv_forward");
    auto [y, last] =
        op.call(x.unpack(), weight.unpack(), maybe(state.unpack()), sizes, units, group, eps);
    y.push_back(last);
    return y;
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "unit_conv_forward(Tensor x, Tensor weight, Tensor? state, int[] sizes, int units, int "
      "group, "
      "float eps) -> (Tensor[] y, Tensor state)");
  m.def(
      "unit_conv_backward(Tensor[] dy, Tensor? dnext, Tensor x, Tensor weight, Tensor? state, int "
      "units, int group, float eps) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl("unit_conv_forward", unit_conv_in_steps);
  m.impl("unit_conv_backward", unit_conv_backward_in_steps);
}

}  // namespace

ShortConv conv_of(const Tensor& x, const Tensor& weight, const MaybeTensor& state) {
  return {.x = x, .weight = weight, .bias = {}, .state = or_undefined(state), .cu_seqlens = {}};
}

void check_units(const Tensor& x, at::IntArrayRef sizes, int64_t units, int64_t group) {
  check(group >= 1 && units >= 0 && units % group == 0 && units <= x.size(2), "[unit_conv] ", units,
        " of ", x.size(2), " channels are not whole units of ", group);
  int64_t channels = 0;
  for (const int64_t size : sizes) channels += size;
  check(channels == x.size(2), "[unit_conv] pieces of ", channels, " channels do not make up ",
        x.size(2));
}

void check_pieces(at::TensorList dy, const Tensor& x) {
  int64_t channels = 0;
  for (const Tensor& piece : dy) {
    check(piece.dim() == 3 && piece.size(0) == x.size(0) && piece.size(1) == x.size(1) &&
              piece.scalar_type() == x.scalar_type(),
          "[unit_conv] a gradient must be [", x.size(0), ",", x.size(1), ",..] in ",
          x.scalar_type(), ", got ", piece.sizes(), " in ", piece.scalar_type());
    channels += piece.size(2);
  }
  check(channels == x.size(2), "[unit_conv] gradients of ", channels, " channels for ", x.size(2));
}

std::tuple<std::vector<Tensor>, Tensor> unit_conv_in_steps(const Tensor& x, const Tensor& weight,
                                                           const MaybeTensor& state,
                                                           at::IntArrayRef sizes, int64_t units,
                                                           int64_t group, double eps) {
  const auto conv = conv_of(x, weight, state);
  check_inputs(conv);
  const auto [y, next] = call_forward(conv);
  check_units(x, sizes, units, group);
  if (units > 0) heads(y, units, group).copy_(call_forward(L2Norm{heads(y, units, group), eps}).y);
  return {pieces(y, sizes.vec(), 2), next};
}

std::tuple<Tensor, Tensor> unit_conv_backward_in_steps(at::TensorList dy, const MaybeTensor& dnext,
                                                       const Tensor& x, const Tensor& weight,
                                                       const MaybeTensor& state, int64_t units,
                                                       int64_t group, double eps) {
  check_pieces(dy, x);
  const auto conv = conv_of(x, weight, state);
  const Tensor d = at::cat(dy, 2);
  if (units > 0) {
    const L2Norm norm{heads(call_forward(conv).y, units, group), eps};
    const Tensor du = heads(d, units, group);
    du.copy_(call_backward<L2Norm>({norm, {}, {du.contiguous()}, {}}).x);
  }
  const auto grads = call_backward<ShortConv>({conv, {}, {d, or_undefined(dnext)}, {}});
  return {grads.x, grads.weight};
}

UnitConvResult unit_conv_definition(const UnitConv& in) {
  const auto conv = short_conv_definition(
      {.x = in.x, .weight = in.weight, .bias = {}, .state = in.state, .cu_seqlens = {}});
  Tensor y = conv.y;
  if (in.units > 0)
    y = at::cat({l2_norm_definition(heads(y, in.units, in.group), in.eps).flatten(2),
                 y.narrow(2, in.units, y.size(2) - in.units)},
                2);
  return {pieces(y, in.sizes, 2), conv.state};
}

UnitConvResult unit_conv(const UnitConv& in) {
  static const auto op = find_op<decltype(unit_conv_in_steps)>("lrnn::unit_conv_forward");
  check(in.x.defined() && in.weight.defined(), "[unit_conv] x and weight must be given");
  check(!in.state.defined() || !in.state.requires_grad(),
        "[unit_conv] there is no gradient of the state");
  if (any_tangent(in.x, in.weight, in.state)) {
    check_inputs(conv_of(in.x, in.weight, maybe(in.state)));
    check_units(in.x, in.sizes, in.units, in.group);
    return unit_conv_definition(in);
  }
  const auto node = make_node<UnitConvBackward>(in.x, in.weight);
  auto [y, state] = below_autograd([&] {
    return op.call(in.x, in.weight, maybe(in.state), in.sizes, in.units, in.group, in.eps);
  });
  UnitConvResult out{.y = y, .state = state};
  if (!node) return out;
  node->x = SavedVariable(in.x, false), node->weight = SavedVariable(in.weight, false);
  node->state = SavedVariable(in.state, false);
  node->sizes = in.sizes, node->units = in.units, node->group = in.group, node->eps = in.eps;
  torch::autograd::set_history(out.y, node);
  torch::autograd::set_history(out.state, node);
  return out;
}

}  // namespace lrnn::ops
