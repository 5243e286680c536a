#include "ops/slstm/slstm.h"

#include <torch/library.h>

#include "ops/checks.h"
#include "ops/node.h"
#include "ops/slstm/inner.h"
#include "ops/torch.h"

// The op itself: checks, then autograd around the inner ops, which each back end registers.
namespace lrnn::ops {
namespace {

using torch::autograd::AutogradContext;

constexpr Checks kSlstmChecks{"slstm"};

void check_slstm(const Slstm& in) {
  check(in.wx.defined() && in.R.defined(), "[slstm] wx and R are needed");
  kSlstmChecks.dimensions("wx", in.wx, 5, "[B,T,H,4,D]");
  const auto x = in.wx.sym_sizes();
  const c10::SymInt B = x[0], H = x[2], D = x[4];
  check(x[3] == 4 && D >= 1, "[slstm] wx must be [B,T,H,4,D], got ", show(x));
  kSlstmChecks.sizes("R", in.R, {H, D, 4, D}, "[H,D,4,D]");
  kSlstmChecks.sizes("bias", in.bias, {H, 4, D}, "[H,4,D]");
  if (in.cu_seqlens.defined()) {
    kSlstmChecks.packed(in.cu_seqlens, B, "wx", in.wx);
    kSlstmChecks.sizes("state", in.state, {in.cu_seqlens.sym_size(0) - 1, 4, H, D}, "[S,4,H,D]");
  } else {
    kSlstmChecks.sizes("state", in.state, {B, 4, H, D}, "[B,4,H,D]");
  }
  kSlstmChecks.type("wx", in.wx, {torch::kFloat32, torch::kFloat64, torch::kBFloat16},
                    "it must be float32, float64 or bfloat16");
  const auto type = in.wx.scalar_type(), wide = wide_type(in.wx);
  for (const auto& [name, y] : {std::pair("R", in.R), {"bias", in.bias}})
    kSlstmChecks.type(name, y, {type, wide},
                      "it must have the dtype of wx, or float32 beside bfloat16");
  kSlstmChecks.type("state", in.state, {wide}, "it must be float32 (float64 for float64 inputs)");
  kSlstmChecks.type("cu_seqlens", in.cu_seqlens, {torch::kInt64}, "it must be int64");
  kSlstmChecks.same_device("wx", in.wx, {in.R, in.bias, in.state});
}

SlstmForwardResult slstm_forward(const Slstm& in, bool save) {
  static const auto op = find_op<SlstmForwardFunction>("lrnn::slstm_forward");
  return call_inner("slstm", in.wx.device(), op, in.wx, in.R, maybe(in.bias), maybe(in.state),
                    maybe(in.cu_seqlens), save);
}

struct SlstmAutograd : torch::autograd::Function<SlstmAutograd> {
  static variable_list forward(AutogradContext* ctx, const Tensor& wx, const Tensor& R,
                               const MaybeTensor& bias, const MaybeTensor& state,
                               const MaybeTensor& cu_seqlens) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Slstm in{.wx = wx,
                   .R = R,
                   .bias = bias.value_or(Tensor()),
                   .state = state.value_or(Tensor()),
                   .cu_seqlens = cu_seqlens.value_or(Tensor())};
    auto [h, final_state, steps] = slstm_forward(in, true);
    ctx->save_for_backward({wx, R, in.bias, in.state, in.cu_seqlens, steps});
    ctx->set_materialize_grads(false);
    return {h, final_state};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_last_derivative("slstm", grads);
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<SlstmBackwardFunction>("lrnn::slstm_backward");
    const auto saved = ctx->get_saved_variables();
    const Tensor &wx = saved[0], &R = saved[1], &bias = saved[2], &state = saved[3],
                 &cu_seqlens = saved[4], &steps = saved[5];
    auto [dwx, dR, dbias, dstate] =
        call_inner("slstm", wx.device(), op, maybe(grads[0]), maybe(grads[1]), wx, R, maybe(bias),
                   maybe(state), steps, maybe(cu_seqlens));
    return {dwx, dR, bias.defined() ? dbias : Tensor(), state.defined() ? dstate : Tensor(),
            Tensor()};
  }
};

bool slstm_wants_gradient(const Slstm& in) {
  if (!torch::GradMode::is_enabled()) return false;
  for (const Tensor* x : {&in.wx, &in.R, &in.bias, &in.state})
    if (x->defined() && x->requires_grad()) return true;
  return false;
}

SlstmResult slstm_below_autograd(const Slstm& in) {
  check_slstm(in);
  auto [h, final_state, steps] = slstm_forward(in, false);
  return {h, final_state};
}

// The function of the schema, around one of the struct of inputs.
template <SlstmResult (*function)(const Slstm&)>
std::tuple<Tensor, Tensor> slstm_registered(const Tensor& wx, const Tensor& R,
                                            const MaybeTensor& bias, const MaybeTensor& state,
                                            const MaybeTensor& cu_seqlens) {
  const auto out = function({.wx = wx,
                             .R = R,
                             .bias = bias.value_or(Tensor()),
                             .state = state.value_or(Tensor()),
                             .cu_seqlens = cu_seqlens.value_or(Tensor())});
  return {out.h, out.state};
}

}  // namespace

SlstmResult slstm(const Slstm& in) {
  check_slstm(in);
  if (any_tangent(in.wx, in.R, in.bias, in.state))
    return by_definition("slstm", slstm_definition, in, in.wx);
  if (slstm_wants_gradient(in)) {
    const auto out =
        SlstmAutograd::apply(in.wx, in.R, maybe(in.bias), maybe(in.state), maybe(in.cu_seqlens));
    return {out[0], out[1]};
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto [h, final_state, steps] = slstm_forward(in, false);
  return {h, final_state};
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "slstm(Tensor wx, Tensor R, Tensor? bias=None, Tensor? state=None, *, Tensor? "
      "cu_seqlens=None) -> (Tensor h, Tensor state)");
  m.def(
      "slstm_forward(Tensor wx, Tensor R, Tensor? bias, Tensor? state, Tensor? cu_seqlens, bool "
      "save) -> (Tensor h, Tensor state, Tensor steps)");
  m.def(
      "slstm_backward(Tensor? dh, Tensor? d_final_state, Tensor wx, Tensor R, Tensor? bias, "
      "Tensor? state, Tensor steps, Tensor? cu_seqlens) -> (Tensor dwx, Tensor dR, Tensor dbias, "
      "Tensor dstate)");
}
TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl("slstm", slstm_registered<slstm_below_autograd>);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl("slstm", slstm_registered<slstm>); }

}  // namespace lrnn::ops
