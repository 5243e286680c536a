#include "ops/mlstm/mlstm.h"

#include <torch/library.h>

#include <cmath>

#include "ops/checks.h"
#include "ops/mlstm/inner.h"
#include "ops/node.h"
#include "ops/torch.h"

// The op itself: checks, then autograd around the inner ops, which each back end registers.
namespace lrnn::ops {
namespace {

using torch::autograd::AutogradContext;

constexpr Checks kMlstmChecks{"mlstm"};

void check_mlstm_types(const Mlstm& in) {
  kMlstmChecks.type("q", in.q, {torch::kFloat32, torch::kFloat64, torch::kBFloat16},
                    "it must be float32, float64 or bfloat16");
  const auto type = in.q.scalar_type(), wide = wide_type(in.q);
  for (const auto& [name, x] : {std::pair("k", in.k), {"v", in.v}})
    kMlstmChecks.type(name, x, {type}, "it must have the dtype of q");
  for (const auto& [name, x] : {std::pair("i", in.i), {"f", in.f}})
    kMlstmChecks.type(name, x, {type, wide},
                      "it must have the dtype of q, or float32 beside bfloat16");
  for (const auto& [name, x] : {std::pair("C", in.state.C), {"n", in.state.n}, {"m", in.state.m}})
    kMlstmChecks.type(name, x, {wide}, "it must be float32 (float64 for float64 inputs)");
  kMlstmChecks.type("cu_seqlens", in.cu_seqlens, {torch::kInt64}, "it must be int64");
}

void check_mlstm(const Mlstm& in) {
  for (const Tensor* x : {&in.q, &in.k, &in.v, &in.i, &in.f})
    check(x->defined(), "[mlstm] q, k, v, i and f are needed");
  const auto &C = in.state.C, &n = in.state.n, &m = in.state.m;
  check(C.defined() == n.defined() && C.defined() == m.defined(),
        "[mlstm] a state is C, n and m together");
  kMlstmChecks.dimensions("q", in.q, 4, "[B,T,H,K]");
  kMlstmChecks.dimensions("v", in.v, 4, "[B,T,H,V]");
  const auto q = in.q.sym_sizes();
  const c10::SymInt B = q[0], T = q[1], H = q[2], K = q[3], V = in.v.sym_size(3);
  check(K >= 1 && V >= 1, "[mlstm] K and V must be at least 1, got q ", q, " and v ",
        in.v.sym_sizes());
  kMlstmChecks.sizes("k", in.k, {B, T, H, K}, "[B,T,H,K]");
  kMlstmChecks.sizes("v", in.v, {B, T, H, V}, "[B,T,H,V]");
  kMlstmChecks.sizes("i", in.i, {B, T, H}, "[B,T,H]");
  kMlstmChecks.sizes("f", in.f, {B, T, H}, "[B,T,H]");
  c10::SymInt S = B;
  if (in.cu_seqlens.defined()) {
    kMlstmChecks.packed(in.cu_seqlens, B, "q", in.q);
    S = in.cu_seqlens.sym_size(0) - 1;
  }
  kMlstmChecks.sizes("C", C, {S, H, K, V}, "[B,H,K,V]");
  kMlstmChecks.sizes("n", n, {S, H, K}, "[B,H,K]");
  kMlstmChecks.sizes("m", m, {S, H}, "[B,H]");
  check_mlstm_types(in);
  kMlstmChecks.same_device("q", in.q, {in.k, in.v, in.i, in.f, C, n, m});
}

double mlstm_scale(const Mlstm& in) {
  if (in.scale) return *in.scale;
  return 1 / std::sqrt(double(in.q.sym_size(3).guard_int(__FILE__, __LINE__)));
}

MlstmForwardResult mlstm_forward(const Mlstm& in, bool save) {
  static const auto op = find_op<MlstmForwardFunction>("lrnn::mlstm_forward");
  return call_inner("mlstm", in.q.device(), op, in.q, in.k, in.v, in.i, in.f, maybe(in.state.C),
                    maybe(in.state.n), maybe(in.state.m), mlstm_scale(in), in.eps,
                    maybe(in.cu_seqlens), save);
}

struct MlstmAutograd : torch::autograd::Function<MlstmAutograd> {
  static variable_list forward(AutogradContext* ctx, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Tensor& i, const Tensor& f,
                               const MaybeTensor& C, const MaybeTensor& n, const MaybeTensor& m,
                               double scale, double eps, const MaybeTensor& cu_seqlens) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<MlstmForwardFunction>("lrnn::mlstm_forward");
    auto [h, final_C, final_n, final_m, states] =
        call_inner("mlstm", q.device(), op, q, k, v, i, f, C, n, m, scale, eps, cu_seqlens, true);
    const auto plain = [](const MaybeTensor& x) { return x.value_or(Tensor()); };
    ctx->save_for_backward(
        {q, k, v, i, f, plain(C), plain(n), plain(m), plain(cu_seqlens), states, final_C, final_n});
    ctx->saved_data["scale"] = scale, ctx->saved_data["eps"] = eps;
    ctx->set_materialize_grads(false);
    return {h, final_C, final_n, final_m};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_last_derivative("mlstm", grads);
    const at::AutoDispatchBelowADInplaceOrView guard;
    static const auto op = find_op<MlstmBackwardFunction>("lrnn::mlstm_backward");
    const auto x = ctx->get_saved_variables();
    auto [dq, dk, dv, di, df, dC, dn, dm] =
        call_inner("mlstm", x[0].device(), op, maybe(grads[0]), maybe(grads[1]), maybe(grads[2]),
                   maybe(grads[3]), x[10], x[11], x[0], x[1], x[2], x[3], x[4], maybe(x[5]),
                   maybe(x[6]), maybe(x[7]), x[9], ctx->saved_data["scale"].toDouble(),
                   ctx->saved_data["eps"].toDouble(), maybe(x[8]));
    if (!x[5].defined()) dC = dn = dm = Tensor();
    return {dq, dk, dv, di, df, dC, dn, dm, Tensor(), Tensor(), Tensor()};
  }
};

bool mlstm_wants_gradient(const Mlstm& in) {
  if (!torch::GradMode::is_enabled()) return false;
  for (const Tensor* x : {&in.q, &in.k, &in.v, &in.i, &in.f, &in.state.C, &in.state.n, &in.state.m})
    if (x->defined() && x->requires_grad()) return true;
  return false;
}

MlstmResult mlstm_below_autograd(const Mlstm& in) {
  check_mlstm(in);
  auto [h, C, n, m, states] = mlstm_forward(in, false);
  return {h, {C, n, m}};
}

// The function of the schema, around one of the struct of inputs.
template <MlstmResult (*function)(const Mlstm&)>
std::tuple<Tensor, Tensor, Tensor, Tensor> mlstm_registered(
    const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& i, const Tensor& f,
    const MaybeTensor& C, const MaybeTensor& n, const MaybeTensor& m, std::optional<double> scale,
    double eps, const MaybeTensor& cu_seqlens) {
  const auto plain = [](const MaybeTensor& x) { return x.value_or(Tensor()); };
  const auto out = function({.q = q,
                             .k = k,
                             .v = v,
                             .i = i,
                             .f = f,
                             .state = {plain(C), plain(n), plain(m)},
                             .scale = scale,
                             .eps = eps,
                             .cu_seqlens = plain(cu_seqlens)});
  return {out.h, out.state.C, out.state.n, out.state.m};
}

}  // namespace

MlstmResult mlstm(const Mlstm& in) {
  check_mlstm(in);
  if (any_tangent(in.q, in.k, in.v, in.i, in.f, in.state.C, in.state.n, in.state.m))
    return by_definition("mlstm", mlstm_definition, in, in.q);
  if (mlstm_wants_gradient(in)) {
    const auto out =
        MlstmAutograd::apply(in.q, in.k, in.v, in.i, in.f, maybe(in.state.C), maybe(in.state.n),
                             maybe(in.state.m), mlstm_scale(in), in.eps, maybe(in.cu_seqlens));
    return {out[0], {out[1], out[2], out[3]}};
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  auto [h, C, n, m, states] = mlstm_forward(in, false);
  return {h, {C, n, m}};
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "mlstm(Tensor q, Tensor k, Tensor v, Tensor i, Tensor f, Tensor? C=None, Tensor? n=None, "
      "Tensor? m=None, float? scale=None, float eps=1e-6, *, Tensor? cu_seqlens=None) -> (Tensor "
      "h, Tensor C, Tensor n, Tensor m)");
  m.def(
      "mlstm_forward(Tensor q, Tensor k, Tensor v, Tensor i, Tensor f, Tensor? C, Tensor? n, "
      "Tensor? m, float scale, float eps, Tensor? cu_seqlens, bool save) -> (Tensor h, Tensor C, "
      "Tensor n, Tensor m, Tensor states)");
  m.def(
      "mlstm_backward(Tensor? dh, Tensor? dfinal_C, Tensor? dfinal_n, Tensor? dfinal_m, Tensor "
      "final_C, Tensor final_n, Tensor q, Tensor k, Tensor v, Tensor i, Tensor f, Tensor? C, "
      "Tensor? n, Tensor? m, Tensor states, float scale, float eps, Tensor? cu_seqlens) -> (Tensor "
      "dq, Tensor dk, Tensor dv, Tensor di, Tensor df, Tensor dC, Tensor dn, Tensor dm)");
}
TORCH_LIBRARY_IMPL(lrnn, CompositeExplicitAutograd, m) {
  m.impl("mlstm", mlstm_registered<mlstm_below_autograd>);
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) { m.impl("mlstm", mlstm_registered<mlstm>); }

}  // namespace lrnn::ops
