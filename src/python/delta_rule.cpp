#include "ops/declare.h"

// fla's delta rules in one call: what python/lrnn/fla/functions.py asks for, as lrnn::delta_product
// takes it. In Python these lines took longer than the host's part of the recurrence. All that they
// call goes through torch's dispatcher, so autograd, autocast, vmap and compilers see the ops they
// know.
namespace lrnn::python {
namespace {

using torch::Tensor;
using Optional = const std::optional<Tensor>&;
using DeltaProductOp = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                                  const Tensor&, Optional, Optional,
                                                  std::optional<double>, Optional, c10::string_view,
                                                  c10::string_view);

template <class Signature> auto op(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

// As fla's kernels do: each row over its length, with 1e-6 under the root.
Tensor unit(const Tensor& x) {
  static const auto l2_norm = op<Tensor(const Tensor&, double)>("lrnn::l2_norm");
  return l2_norm.call(x, 1e-6);
}

// What states, and gates of another type, are kept in beside inputs of this type.
Tensor wide(const Tensor& x, c10::ScalarType beside) {
  return x.to(beside == torch::kDouble ? torch::kDouble : torch::kFloat);
}
Tensor gate(const Tensor& x, c10::ScalarType beside) {
  return x.scalar_type() == beside ? x : wide(x, beside);
}

// [B,T N,..] -> [B,T,N,..]
Tensor by_token(const Tensor& x, int64_t steps) {
  return steps == 1 ? x.unsqueeze(2) : x.unflatten(1, {-1, steps});
}

struct DeltaRuleResult {
  Tensor o, state;

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.o, ops::result("o", "BTHV"));
    visit(out.state, ops::result("state", "SHKV"));
  }
};

// As fla has them: keys, values and betas of `steps` steps a token lie one after the other, and the
// state is [S,H,V,K] with v_first.
struct DeltaRule {
  Tensor q, k, v, beta, g, state, cu_seqlens;
  std::optional<double> scale;
  bool normalize = false, v_first = false;
  int64_t steps = 1;
  std::optional<c10::ScalarType> dtype;  // of o; that of q where it is not said
  std::string accuracy;

  static constexpr const char* kName = "delta_rule";
  using Result = DeltaRuleResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.q, ops::main_input("q", "BTGK"));
    visit(in.k, ops::needed("k", "BTGK"));
    visit(in.v, ops::needed("v", "BTHV"));
    visit(in.beta, ops::needed("beta", "BTH"));
    visit(in.g, ops::optional("g", "BTH(K)"));
    visit(in.scale, "scale");
    visit(in.state, ops::optional("state", "SHKV"));
    visit(in.normalize, "normalize");
    visit(in.cu_seqlens, ops::sequence_bounds(false));
    visit(in.steps, "steps");
    visit(in.v_first, "v_first");
    visit(in.dtype, "dtype");
    visit(in.accuracy, "accuracy");
  }
};

std::optional<Tensor> if_given(const Tensor& x) {
  return x.defined() ? std::optional(x) : std::nullopt;
}

DeltaRuleResult delta_rule(DeltaRule in) {
  auto& [q, k, v, beta, g, state, cu_seqlens, scale, normalize, v_first, steps, dtype, accuracy] =
      in;
  const auto heads = q.sym_size(2), key_heads = k.sym_size(2), value_heads = v.sym_size(2);
  TORCH_CHECK_VALUE(
      heads == key_heads && (heads == value_heads || (heads > 0 && value_heads % heads == 0)),
      value_heads, " heads of values cannot share ", heads, " heads of queries and ", key_heads,
      " of keys.");
  const auto out = dtype.value_or(q.scalar_type());
  if (normalize) q = unit(q), k = unit(k);
  // In one type, the widest of theirs: fla's kernels read each in its own.
  const auto type =
      c10::promoteTypes(c10::promoteTypes(q.scalar_type(), k.scalar_type()), v.scalar_type());
  for (Tensor* x : {&q, &k, &v})
    if (x->scalar_type() != type) *x = x->to(type);
  if (g.defined()) g = gate(g, type);
  if (state.defined()) state = wide(v_first ? state.transpose(-1, -2) : state, type);
  static const auto delta_product = op<DeltaProductOp>("lrnn::delta_product");
  const auto [o, last] = delta_product.call(
      q, by_token(k, steps), by_token(v, steps), by_token(gate(beta, type), steps), if_given(g),
      if_given(state), scale, if_given(cu_seqlens), accuracy, "");
  return {o.scalar_type() == out ? o : o.to(out), last};
}

void boxed_delta_rule(const c10::OperatorHandle& op, ops::Stack* stack) {
  const c10::IValue* at = ops::first_argument(op, *stack);
  const DeltaRuleResult out = delta_rule(ops::pull<DeltaRule>(at));
  torch::jit::drop(*stack, ops::arguments_of(op));
  ops::push(*stack, out);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  const auto kernel = [] { return torch::CppFunction::makeFromBoxedFunction<&boxed_delta_rule>(); };
  m.def(ops::schemas_of<DeltaRule>().op.c_str(), kernel());
  // Without this line vmap would make a loop of it.
  m.impl("delta_rule", torch::dispatch(c10::DispatchKey::FuncTorchBatchedDecomposition, kernel()));
}

}  // namespace lrnn::python
