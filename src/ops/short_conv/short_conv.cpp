#include "ops/short_conv/short_conv.h"

#include "ops/inner.h"
#include "ops/node.h"
#include "ops/short_conv/cpu.h"

namespace lrnn::ops {
namespace {

void check_cu_seqlens(const Tensor& x, const Tensor& cu) {
  check(x.sym_size(0) == 1, "[short_conv] packed sequences need x of [1,T,D], got ", x.sym_sizes());
  check(cu.dim() == 1 && cu.scalar_type() == at::kLong && cu.sym_size(0) >= 1,
        "[short_conv] cu_seqlens must be int64 [S+1], got ", cu.scalar_type(), " ", cu.sym_sizes());
  if (!cu.device().is_cpu() || cu.is_meta() || !cu.has_storage()) return;
  const Tensor flat = cu.contiguous();
  const int64_t* at = flat.const_data_ptr<int64_t>();
  bool rising = at[0] == 0 && at[flat.numel() - 1] == x.size(1);
  for (int64_t s = 1; s < flat.numel(); ++s) rising &= at[s - 1] <= at[s];
  check(rising, "[short_conv] cu_seqlens must rise from 0 to T = ", x.size(1));
}

auto short_conv_op() {
  static const auto op = find_op<decltype(short_conv_cpu)>("lrnn::short_conv");
  return op;
}

struct ShortConvBackward final : torch::autograd::Node {
  SavedVariable x, weight, bias, state, cu_seqlens;
  bool silu = true;
  std::string name() const override { return "ShortConvBackward"; }
  void release_variables() override {
    for (auto* saved : {&x, &weight, &bias, &state, &cu_seqlens}) saved->reset_data();
  }
  variable_list apply(variable_list&& grad) override {
    static const auto op = find_op<decltype(short_conv_backward_cpu)>("lrnn::short_conv_backward");
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined() && !grad[1].defined()) return variable_list(4);
    const Tensor in = x.unpack();
    const Tensor dy = grad[0].defined() ? grad[0] : at::zeros_like(in);
    auto [dx, dweight, dbias, dstate] = backward_call(grad, [&] {
      return op.call(dy, maybe(grad[1]), in, weight.unpack(), maybe(bias.unpack()),
                     maybe(state.unpack()), silu, maybe(cu_seqlens.unpack()));
    });
    return {dx, dweight, dbias, dstate};
  }
};

std::tuple<Tensor, Tensor> short_conv_autograd(const Tensor& x, const Tensor& weight,
                                               const OptionalTensor& bias,
                                               const OptionalTensor& state, bool silu,
                                               const OptionalTensor& cu_seqlens) {
  const Tensor b = or_undefined(bias), past = or_undefined(state), cu = or_undefined(cu_seqlens);
  if (any_tangent(x, weight, b, past)) {
    check_short_conv(x, weight, bias, state, cu_seqlens);
    const ShortConv in{
        .x = x, .weight = weight, .bias = b, .state = past, .silu = silu, .cu_seqlens = cu};
    const auto out = by_definition("short_conv", short_conv_definition, in, x);
    return {out.y, out.state};
  }
  const auto node = make_node<ShortConvBackward>(x, weight, b, past);
  if (node) {
    node->x = SavedVariable(x, false), node->weight = SavedVariable(weight, false);
    node->bias = SavedVariable(b, false), node->state = SavedVariable(past, false);
    node->cu_seqlens = SavedVariable(cu, false), node->silu = silu;
  }
  auto result = below_autograd(
      [&] { return short_conv_op().call(x, weight, bias, state, silu, cu_seqlens); });
  if (node) {
    torch::autograd::set_history(std::get<0>(result), node);
    torch::autograd::set_history(std::get<1>(result), node);
  }
  return result;
}

std::tuple<Tensor, Tensor> short_conv_meta(const Tensor& x, const Tensor& weight,
                                           const OptionalTensor& bias, const OptionalTensor& state,
                                           bool, const OptionalTensor& cu_seqlens) {
  const auto sequences = check_short_conv(x, weight, bias, state, cu_seqlens);
  return {unfilled(x), at::empty_symint({sequences, weight.sym_size(2), x.sym_size(2)}, x.options())
                           .transpose(1, 2)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> short_conv_backward_meta(
    const Tensor&, const OptionalTensor&, const Tensor& x, const Tensor& weight,
    const OptionalTensor& bias, const OptionalTensor& state, bool, const OptionalTensor&) {
  Tensor dstate;
  if (defined(state))
    dstate = at::empty_symint({state->sym_size(0), state->sym_size(2), state->sym_size(1)},
                              state->options())
                 .transpose(1, 2);
  return {unfilled(x), unfilled(weight), defined(bias) ? unfilled(*bias) : Tensor(), dstate};
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "short_conv(Tensor x, Tensor weight, Tensor? bias=None, Tensor? state=None, bool silu=True, "
      "Tensor? cu_seqlens=None) -> (Tensor y, Tensor state)");
  m.def(
      "short_conv_backward(Tensor dy, Tensor? dnext, Tensor x, Tensor weight, Tensor? bias, "
      "Tensor? state, bool silu, Tensor? cu_seqlens) -> (Tensor, Tensor, Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("short_conv", short_conv_cpu);
  m.impl("short_conv_backward", short_conv_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("short_conv", short_conv_meta);
  m.impl("short_conv_backward", short_conv_backward_meta);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl("short_conv", short_conv_autograd); }

}  // namespace

c10::SymInt check_short_conv(const Tensor& x, const Tensor& weight, const OptionalTensor& bias,
                             const OptionalTensor& state, const OptionalTensor& cu_seqlens) {
  check(x.dim() == 3, "[short_conv] x must be [B,T,D], got ", x.sym_sizes());
  const auto D = x.sym_size(2);
  check(weight.dim() == 3 && weight.sym_size(0) == D && weight.sym_size(1) == 1 &&
            weight.sym_size(2) >= 1,
        "[short_conv] weight must be [", D, ",1,W] = [D,1,W], got ", weight.sym_sizes());
  check_parameter("short_conv", "weight", weight, x);
  if (defined(bias)) {
    check(bias->dim() == 1 && bias->sym_size(0) == D, "[short_conv] bias must be [", D,
          "] = [D], got ", bias->sym_sizes());
    check_parameter("short_conv", "bias", *bias, x);
  }
  if (defined(cu_seqlens)) check_cu_seqlens(x, *cu_seqlens);
  const auto S = defined(cu_seqlens) ? cu_seqlens->sym_size(0) - 1 : x.sym_size(0);
  if (defined(state))
    check(state->dim() == 3 && state->sym_size(0) == S && state->sym_size(1) == D &&
              state->sym_size(2) == weight.sym_size(2) && state->device() == x.device(),
          "[short_conv] state must be [", S, ",", D, ",", weight.sym_size(2), "] on ", x.device(),
          ", got ", state->sym_sizes(), " on ", state->device());
  return S;
}

ShortConvResult short_conv(const ShortConv& in) {
  check(in.x.defined() && in.weight.defined(), "[short_conv] x and weight must be given");
  auto [y, state] = short_conv_op().call(in.x, in.weight, maybe(in.bias), maybe(in.state), in.silu,
                                         maybe(in.cu_seqlens));
  return {y, state};
}

}  // namespace lrnn::ops
