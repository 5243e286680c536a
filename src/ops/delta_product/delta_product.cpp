#include "ops/delta_product/delta_product.h"

#include <torch/library.h>

#include <cmath>

#include "base/error.h"
#include "ops/delta_product/inner.h"
#include "ops/node.h"
#include "ops/torch.h"

// The op itself: checks, then autograd around the inner ops, which each back end registers.
namespace lrnn::ops {
namespace {

using torch::autograd::AutogradContext;

ForwardResult forward(const MaybeTensor& q, const DeltaProduct& in, double scale, bool save) {
  static const auto op = find_op<ForwardFunction>("lrnn::delta_product_forward");
  return call_inner("delta_product", in.k.device(), op, q, in.k, in.v, in.beta, maybe(in.log_gate),
                    maybe(in.state), scale, maybe(in.cu_seqlens), in.precision, save);
}

struct Autograd : torch::autograd::Function<Autograd> {
  static variable_list forward(AutogradContext* ctx, const MaybeTensor& q, const Tensor& k,
                               const Tensor& v, const Tensor& beta, const MaybeTensor& log_gate,
                               const MaybeTensor& state, double scale,
                               const MaybeTensor& cu_seqlens, const std::string& precision) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<ForwardFunction>("lrnn::delta_product_forward");
    auto [o, final_state, error, states] =
        call_inner("delta_product", k.device(), op, q, k, v, beta, log_gate, state, scale,
                   cu_seqlens, precision, true);
    ctx->save_for_backward({or_undefined(q), k, beta, or_undefined(log_gate), or_undefined(state),
                            or_undefined(cu_seqlens), error, states});
    ctx->saved_data["scale"] = scale, ctx->saved_data["precision"] = precision;
    ctx->set_materialize_grads(false);
    return {o, final_state};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_last_derivative("delta_product", grads);
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<BackwardFunction>("lrnn::delta_product_backward");
    const auto saved = ctx->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &beta = saved[2], &log_gate = saved[3],
                 &state = saved[4], &cu_seqlens = saved[5], &error = saved[6], &states = saved[7];
    auto [dq, dk, dv, dbeta, dlog_gate, dstate] = call_inner(
        "delta_product", k.device(), op, maybe(grads[0]), maybe(grads[1]), maybe(q), k, beta,
        maybe(log_gate), maybe(state), error, states, ctx->saved_data["scale"].toDouble(),
        maybe(cu_seqlens), ctx->saved_data["precision"].toStringRef());
    if (!q.defined() || !grads[0].defined()) dq = Tensor();
    if (!log_gate.defined()) dlog_gate = Tensor();
    if (!state.defined()) dstate = Tensor();
    return {dq, dk, dv, dbeta, dlog_gate, dstate, Tensor(), Tensor(), Tensor()};
  }
};

double scale_of(const DeltaProduct& in) {
  if (in.scale) return *in.scale;
  return 1 / std::sqrt(double(in.k.sym_size(4).guard_int(__FILE__, __LINE__)));
}

// The function of the schema, around one of the struct of inputs.
template <DeltaProductResult (*function)(const DeltaProduct&)>
std::tuple<Tensor, Tensor> registered(const Tensor& q, const Tensor& k, const Tensor& v,
                                      const Tensor& beta, const MaybeTensor& log_gate,
                                      const MaybeTensor& state, std::optional<double> scale,
                                      const MaybeTensor& cu_seqlens, c10::string_view precision) {
  const auto out = function({.q = q,
                             .k = k,
                             .v = v,
                             .beta = beta,
                             .log_gate = or_undefined(log_gate),
                             .state = or_undefined(state),
                             .scale = scale,
                             .cu_seqlens = or_undefined(cu_seqlens),
                             .precision = std::string(precision)});
  return {out.o, out.state};
}

DeltaProductResult delta_product_below_autograd(const DeltaProduct& in) {
  check_delta_product(in);
  auto [o, final_state, error, states] = forward(maybe(in.q), in, scale_of(in), false);
  return {o, final_state};
}

bool wants_gradient(const DeltaProduct& in) {
  if (!torch::GradMode::is_enabled()) return false;
  for (const Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state})
    if (x->defined() && x->requires_grad()) return true;
  return false;
}

}  // namespace

DeltaProductResult delta_product(const DeltaProduct& in) {
  check_delta_product(in);
  if (any_tangent(in.q, in.k, in.v, in.beta, in.log_gate, in.state))
    return by_definition("delta_product", delta_product_definition, in, in.k);
  const double scale = scale_of(in);
  if (wants_gradient(in)) {
    const auto out = Autograd::apply(maybe(in.q), in.k, in.v, in.beta, maybe(in.log_gate),
                                     maybe(in.state), scale, maybe(in.cu_seqlens), in.precision);
    return {in.q.defined() ? out[0] : Tensor(), out[1]};
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto [o, final_state, error, states] = forward(maybe(in.q), in, scale, false);
  return {in.q.defined() ? o : Tensor(), final_state};
}

TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl("delta_product", registered<delta_product_below_autograd>);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl("delta_product", registered<delta_product>); }

}  // namespace lrnn::ops
