#include <torch/library.h>
#include <torch/types.h>

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

}  // namespace

std::tuple<Tensor, Tensor> delta_rule(Tensor q, Tensor k, Tensor v, const Tensor& beta, Optional g,
                                      std::optional<double> scale, Optional state, bool normalize,
                                      Optional cu_seqlens, int64_t steps, bool v_first,
                                      std::optional<c10::ScalarType> dtype,
                                      c10::string_view accuracy) {
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
  static const auto delta_product = op<DeltaProductOp>("lrnn::delta_product");
  auto [o, last] = delta_product.call(
      q, by_token(k, steps), by_token(v, steps), by_token(gate(beta, type), steps),
      g ? std::optional(gate(*g, type)) : g,
      state ? std::optional(wide(v_first ? state->transpose(-1, -2) : *state, type)) : state, scale,
      cu_seqlens, accuracy, "");
  return {o.scalar_type() == out ? o : o.to(out), last};
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "delta_rule(Tensor q, Tensor k, Tensor v, Tensor beta, Tensor? g=None, float? scale=None, "
      "Tensor? state=None, bool normalize=False, Tensor? cu_seqlens=None, int steps=1, "
      "bool v_first=False, ScalarType? dtype=None, str accuracy=\"\") -> (Tensor o, Tensor state)",
      delta_rule);
  // Without this line vmap would make a loop of it.
  m.impl("delta_rule",
         torch::dispatch(c10::DispatchKey::FuncTorchBatchedDecomposition, delta_rule));
}

}  // namespace lrnn::python
