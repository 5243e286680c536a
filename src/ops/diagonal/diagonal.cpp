#include "ops/diagonal/diagonal.h"

#include "ops/checks.h"
#include "ops/node.h"
#include "ops/torch.h"

// Checks, then autograd around the inner ops, which each back end registers.
namespace lrnn::ops {
namespace {

using torch::autograd::AutogradContext;

DiagonalForwardResult diagonal_forward(const char* name, const Diagonal& in, bool save) {
  static const auto op = find_op<DiagonalForwardFunction>("lrnn::diagonal_forward");
  return call_inner(name, in.k.device(), op, maybe(in.q), in.k, in.v, in.log_decay, maybe(in.kk),
                    maybe(in.rate), maybe(in.state), in.scale, in.negative, maybe(in.cu_seqlens),
                    save);
}

struct DiagonalAutograd : torch::autograd::Function<DiagonalAutograd> {
  static variable_list forward(AutogradContext* ctx, const std::string& name, const MaybeTensor& q,
                               const Tensor& k, const Tensor& v, const Tensor& log_decay,
                               const MaybeTensor& kk, const MaybeTensor& rate,
                               const MaybeTensor& state, double scale, bool negative,
                               const MaybeTensor& cu_seqlens) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [o, final_state, states] = diagonal_forward(name.c_str(),
                                                     {.q = or_undefined(q),
                                                      .k = k,
                                                      .v = v,
                                                      .log_decay = log_decay,
                                                      .kk = or_undefined(kk),
                                                      .rate = or_undefined(rate),
                                                      .state = or_undefined(state),
                                                      .scale = scale,
                                                      .negative = negative,
                                                      .cu_seqlens = or_undefined(cu_seqlens)},
                                                     true);
    ctx->save_for_backward({or_undefined(q), k, v, log_decay, or_undefined(kk), or_undefined(rate),
                            or_undefined(state), or_undefined(cu_seqlens), states});
    ctx->saved_data["name"] = name;
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["negative"] = negative;
    ctx->set_materialize_grads(false);
    return {o, final_state};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const std::string name = ctx->saved_data["name"].toStringRef();
    check_last_derivative(name, grads);
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<DiagonalBackwardFunction>("lrnn::diagonal_backward");
    const auto in = ctx->get_saved_variables();
    const Tensor &q = in[0], &kk = in[4], &state = in[6];
    auto [dq, dk, dv, dlog_decay, dkk, drate, dstate] = call_inner(
        name.c_str(), in[1].device(), op, maybe(grads[0]), maybe(grads[1]), maybe(q), in[1], in[2],
        in[3], maybe(kk), maybe(in[5]), maybe(state), in[8], ctx->saved_data["scale"].toDouble(),
        ctx->saved_data["negative"].toBool(), maybe(in[7]));
    if (!q.defined() || !grads[0].defined()) dq = Tensor();
    if (!kk.defined()) dkk = drate = Tensor();
    if (!state.defined()) dstate = Tensor();
    return {Tensor(), dq, dk, dv, dlog_decay, dkk, drate, dstate, Tensor(), Tensor(), Tensor()};
  }
};

void check_diagonal_types(const Checks& checks, const DiagonalNames& names, const Diagonal& in) {
  checks.type("k", in.k, {torch::kFloat32, torch::kFloat64, torch::kBFloat16},
              "it must be float32, float64 or bfloat16");
  const auto type = in.k.scalar_type(), wide = wide_type(in.k);
  for (const auto& [name, x] :
       {std::pair(names.q, in.q), {"v", in.v}, {"kk", in.kk}, {"a", in.rate}})
    checks.type(name, x, {type}, "it must have the dtype of k");
  checks.type(names.log_decay, in.log_decay, {type, wide},
              "it must have the dtype of k, or float32 beside bfloat16");
  checks.type("state", in.state, {wide}, "it must be float32 (float64 for float64 inputs)");
  checks.type("cu_seqlens", in.cu_seqlens, {torch::kInt64}, "it must be int64");
}

}  // namespace

void check_diagonal(const DiagonalNames& names, const Diagonal& in) {
  const Checks checks{names.op};
  check(in.k.defined() && in.v.defined() && in.log_decay.defined(), "[", names.op, "] k, v and ",
        names.log_decay, " are needed");
  checks.dimensions("k", in.k, 4, "[B,T,H,K]");
  checks.dimensions("v", in.v, 4, "[B,T,H,V]");
  const c10::SymInt B = in.k.sym_size(0), T = in.k.sym_size(1), H = in.k.sym_size(2),
                    K = in.k.sym_size(3), V = in.v.sym_size(3);
  checks.sizes("v", in.v, {B, T, H, V}, "[B,T,H,V]");
  for (const auto& [name, x] :
       {std::pair(names.q, in.q), {names.log_decay, in.log_decay}, {"kk", in.kk}, {"a", in.rate}})
    checks.sizes(name, x, {B, T, H, K}, "[B,T,H,K]");
  check(K >= 1 && V >= 1, "[", names.op, "] K and V must be at least 1, got k ",
        show(in.k.sym_sizes()), " and v ", show(in.v.sym_sizes()));
  if (in.cu_seqlens.defined()) {
    checks.packed(in.cu_seqlens, B, "k", in.k);
    checks.sizes("state", in.state, {in.cu_seqlens.sym_size(0) - 1, H, K, V}, "[S,H,K,V]");
  } else {
    checks.sizes("state", in.state, {B, H, K, V}, "[B,H,K,V]");
  }
  check_diagonal_types(checks, names, in);
  checks.same_device("k", in.k, {in.q, in.v, in.log_decay, in.kk, in.rate, in.state});
}

std::pair<Tensor, Tensor> diagonal_below_autograd(const char* op, const Diagonal& in) {
  auto [o, final_state, states] = diagonal_forward(op, in, false);
  return {o, final_state};
}

std::pair<Tensor, Tensor> diagonal(const char* op, const Diagonal& in) {
  bool gradient = false;
  if (torch::GradMode::is_enabled())
    for (const Tensor* x : {&in.q, &in.k, &in.v, &in.log_decay, &in.kk, &in.rate, &in.state})
      gradient |= x->defined() && x->requires_grad();
  if (gradient) {
    const auto out = DiagonalAutograd::apply(std::string(op), maybe(in.q), in.k, in.v, in.log_decay,
                                             maybe(in.kk), maybe(in.rate), maybe(in.state),
                                             in.scale, in.negative, maybe(in.cu_seqlens));
    return {in.q.defined() ? out[0] : Tensor(), out[1]};
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto [o, final_state] = diagonal_below_autograd(op, in);
  return {in.q.defined() ? o : Tensor(), final_state};
}

}  // namespace lrnn::ops
