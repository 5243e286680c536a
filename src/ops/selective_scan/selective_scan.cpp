#include "ops/selective_scan/selective_scan.h"

#include <torch/library.h>

#include "ops/node.h"
#include "ops/selective_scan/inner.h"
#include "ops/torch.h"

// The op itself: checks, then autograd around the inner ops, which each back end registers.
namespace lrnn::ops {
namespace {

using torch::autograd::AutogradContext;

ScanForwardResult scan_forward(const SelectiveScan& in, bool save) {
  static const auto op = find_op<ScanForwardFunction>("lrnn::selective_scan_forward");
  return call_inner("selective_scan", in.u.device(), op, in.u, in.delta, in.A, in.B, maybe(in.C),
                    maybe(in.D), maybe(in.z), maybe(in.delta_bias), maybe(in.state), in.softplus,
                    in.negative, maybe(in.cu_seqlens), save);
}

struct ScanAutograd : torch::autograd::Function<ScanAutograd> {
  static variable_list forward(AutogradContext* ctx, const Tensor& u, const Tensor& delta,
                               const Tensor& A, const Tensor& B, const MaybeTensor& C,
                               const MaybeTensor& D, const MaybeTensor& z,
                               const MaybeTensor& delta_bias, const MaybeTensor& state,
                               bool softplus, bool negative, const MaybeTensor& cu_seqlens) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [y, final_state, states] = scan_forward({.u = u,
                                                  .delta = delta,
                                                  .A = A,
                                                  .B = B,
                                                  .C = or_undefined(C),
                                                  .D = or_undefined(D),
                                                  .z = or_undefined(z),
                                                  .delta_bias = or_undefined(delta_bias),
                                                  .state = or_undefined(state),
                                                  .softplus = softplus,
                                                  .negative = negative,
                                                  .cu_seqlens = or_undefined(cu_seqlens)},
                                                 true);
    ctx->save_for_backward({u, delta, A, B, or_undefined(C), or_undefined(D), or_undefined(z),
                            or_undefined(delta_bias), or_undefined(state), or_undefined(cu_seqlens),
                            states});
    ctx->saved_data["softplus"] = softplus;
    ctx->saved_data["negative"] = negative;
    ctx->set_materialize_grads(false);
    return {y, final_state};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_last_derivative("selective_scan", grads);
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<ScanBackwardFunction>("lrnn::selective_scan_backward");
    const auto in = ctx->get_saved_variables();
    auto [du, ddelta, dA, dB, dC, dD, dz, dbias, dstate] = call_inner(
        "selective_scan", in[0].device(), op, maybe(grads[0]), maybe(grads[1]), in[0], in[1], in[2],
        in[3], maybe(in[4]), maybe(in[5]), maybe(in[6]), maybe(in[7]), maybe(in[8]), in[10],
        ctx->saved_data["softplus"].toBool(), ctx->saved_data["negative"].toBool(), maybe(in[9]));
    const bool outputs = in[4].defined() && grads[0].defined();
    const auto where = [](bool wanted, const Tensor& x) { return wanted ? x : Tensor(); };
    return {du,
            ddelta,
            dA,
            dB,
            where(outputs, dC),
            where(outputs && in[5].defined(), dD),
            where(outputs && in[6].defined(), dz),
            where(in[7].defined(), dbias),
            where(in[8].defined(), dstate),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

bool scan_wants_gradient(const SelectiveScan& in) {
  if (!torch::GradMode::is_enabled()) return false;
  for (const Tensor* x :
       {&in.u, &in.delta, &in.A, &in.B, &in.C, &in.D, &in.z, &in.delta_bias, &in.state})
    if (x->defined() && x->requires_grad()) return true;
  return false;
}

// The function of the schema, around one of the struct of inputs.
template <SelectiveScanResult (*function)(const SelectiveScan&)>
std::tuple<Tensor, Tensor> scan_registered(const Tensor& u, const Tensor& delta, const Tensor& A,
                                           const Tensor& B, const Tensor& C, const MaybeTensor& D,
                                           const MaybeTensor& z, const MaybeTensor& delta_bias,
                                           const MaybeTensor& state, bool softplus, bool negative,
                                           const MaybeTensor& cu_seqlens) {
  const auto out = function({.u = u,
                             .delta = delta,
                             .A = A,
                             .B = B,
                             .C = C,
                             .D = or_undefined(D),
                             .z = or_undefined(z),
                             .delta_bias = or_undefined(delta_bias),
                             .state = or_undefined(state),
                             .softplus = softplus,
                             .negative = negative,
                             .cu_seqlens = or_undefined(cu_seqlens)});
  return {out.y, out.state};
}

SelectiveScanResult scan_below_autograd(const SelectiveScan& in) {
  check_selective_scan(in);
  auto [y, final_state, states] = scan_forward(in, false);
  return {y, final_state};
}

}  // namespace

SelectiveScanResult selective_scan(const SelectiveScan& in) {
  check_selective_scan(in);
  if (any_tangent(in.u, in.delta, in.A, in.B, in.C, in.D, in.z, in.delta_bias, in.state))
    return by_definition("selective_scan", selective_scan_definition, in, in.u);
  if (scan_wants_gradient(in)) {
    const auto out = ScanAutograd::apply(in.u, in.delta, in.A, in.B, maybe(in.C), maybe(in.D),
                                         maybe(in.z), maybe(in.delta_bias), maybe(in.state),
                                         in.softplus, in.negative, maybe(in.cu_seqlens));
    return {in.C.defined() ? out[0] : Tensor(), out[1]};
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto [y, final_state, states] = scan_forward(in, false);
  return {in.C.defined() ? y : Tensor(), final_state};
}

TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl("selective_scan", scan_registered<scan_below_autograd>);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl("selective_scan", scan_registered<selective_scan>); }

}  // namespace lrnn::ops
