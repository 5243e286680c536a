#pragma once
#include <optional>

#include "ops/stack.h"

// torch.func.vmap. A batch of calls is one call: its dimension is folded into that of the
// sequences, or, where sequences are packed, behind each other; row ops take it as one more
// dimension.
//
// Where that would not be the same, the calls are made one by one. So it is with parameters (a
// weight, A of the selective scan): each call of a batch may have its own, and each has its own
// gradient. And so it is where a gradient alone comes in a batch, as for jacrev.
namespace lrnn::ops {

// The vmap under way.
class VmapLevel {
 public:
  VmapLevel();
  const c10::SymInt& size() const { return size_; }
  // x as it is below this level: with the batch in front where it has one.
  std::pair<Tensor, bool> lower(const Tensor& x) const;
  Tensor raise(const Tensor& x) const;  // dimension 0 is the batch
  // What backward is to read lies as folded calls left it: said by one more tensor behind it, which
  // names the level.
  Tensor mark() const;
  bool is_mark(const Tensor& x) const;

 private:
  int64_t level_;
  c10::SymInt size_;
};

// A struct of tensors below the level, and which of them come in a batch.
template <class T> struct Lowered {
  T of;
  c10::SmallVector<bool, 12> batched;
  bool any = false;

  Lowered(const T& given, const VmapLevel& level) : of(given) {
    each_tensor(of, [&](Tensor& x, const Field&) {
      bool is = false;
      if (x.defined()) std::tie(x, is) = level.lower(x);
      batched.push_back(is), any |= is;
    });
  }
  // The i-th call.
  T at(int64_t i) const {
    T out = of;
    size_t j = 0;
    each_tensor(out, [&](Tensor& x, const Field&) {
      if (batched[j++]) x = x.select(0, i);
    });
    return out;
  }
};

// How the batch goes into a tensor of this field, and out of it.
struct Fold {
  c10::SymInt calls;
  bool packed = false;

  Tensor in(const Tensor& x, bool batched, const Field& field) const;
  Tensor out(const Tensor& x, const Field& field) const;
};

inline bool is_parameter(const Field& field) {
  return field.kind != Kind::kIndex && !std::strchr("BS*", field.shape[0]);
}

// The calls as one, where they can be: with gradients to come a parameter is in the way.
template <class In>
std::optional<Fold> fold_of(const Lowered<In>& in, const VmapLevel& level, bool gradients) {
  bool can = true, packed = false;
  size_t i = 0;
  each_tensor(in.of, [&](const Tensor& x, const Field& field) {
    const bool batched = in.batched[i++];
    if (is_parameter(field)) can &= !batched && !(gradients && x.defined());
    if (field.kind == Kind::kIndex) packed |= x.defined(), can &= !batched;
  });
  return can ? std::optional(Fold{level.size(), packed}) : std::nullopt;
}
template <class T> T folded(const Lowered<T>& of, const Fold& fold) {
  T out = of.of;
  size_t i = 0;
  each_tensor(out,
              [&](Tensor& x, const Field& field) { x = fold.in(x, of.batched[i], field), ++i; });
  return out;
}
// cu_seqlens of all calls, one behind the other.
template <class In> In with_bounds_of_all(In folded, const Lowered<In>& in, const Fold& fold) {
  if constexpr (requires { folded.cu_seqlens; })
    if (fold.packed) {
      const auto T = main_of(folded).sym_size(1) / fold.calls;
      const Tensor& cu = in.of.cu_seqlens;
      const Tensor first = at::arange(fold.calls, cu.options()).unsqueeze(1) * T;
      const Tensor all = cu.slice(0, 0, cu.size(0) - 1).unsqueeze(0) + first;
      folded.cu_seqlens =
          at::cat({all.flatten(), (cu.slice(0, cu.size(0) - 1) * 0 + T * fold.calls)});
    }
  return folded;
}

// Lists of tensors, call by call -> each in a batch.
std::vector<Tensor> stacked(const std::vector<std::vector<Tensor>>& calls, const VmapLevel& level);

inline c10::impl::ExcludeDispatchKeyGuard without_vmap() {
  return c10::impl::ExcludeDispatchKeyGuard(c10::DispatchKey::FuncTorchBatched);
}
inline Stack called(const c10::OperatorHandle& op, Stack stack) {
  op.callBoxed(stack);
  return stack;
}
inline std::vector<Tensor> tensors_of(const Stack& stack, size_t n) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < n; ++i) out.push_back(stack[i].toTensor());
  return out;
}
template <class T> std::vector<Field> fields_of() {
  std::vector<Field> out;
  const T none{};
  each_tensor(none, [&](const Tensor&, const Field& field) { out.push_back(field); });
  return out;
}

// NAME, and NAME_forward, which also has `save` and leaves `kept`.
template <class In, bool kInner> void boxed_vmap(const c10::OperatorHandle& op, Stack* stack) {
  const auto guard = without_vmap();
  const VmapLevel level;
  const bool save = kInner && stack->back().toBool();
  const c10::IValue* at = first_argument(op, *stack);
  const Lowered<In> in(pull<In>(at), level);
  const auto call = [&](const In& one) {
    Stack arguments;
    push(arguments, one);
    if (kInner) arguments.emplace_back(save);
    return called(op, std::move(arguments));
  };
  const auto fields = fields_of<typename In::Result>();
  torch::jit::drop(*stack, arguments_of(op));
  if (!in.any) {
    for (auto& x : call(in.of)) stack->push_back(std::move(x));
    return;
  }
  std::vector<Tensor> out, kept;
  if (const auto fold = fold_of(in, level, save)) {
    const In all = with_bounds_of_all(folded(in, *fold), in, *fold);
    const Stack made = call(all);
    out = tensors_of(made, fields.size());
    for (size_t i = 0; i < fields.size(); ++i)
      if (matters(fields[i], all)) out[i] = level.raise(fold->out(out[i], fields[i]));
    if (save) kept = made.back().toTensorVector(), kept.push_back(level.mark());
  } else {
    std::vector<std::vector<Tensor>> outs, lists;
    for (int64_t i = 0; i < level.size().guard_int(__FILE__, __LINE__); ++i) {
      const Stack made = call(in.at(i));
      outs.push_back(tensors_of(made, fields.size()));
      if (save) lists.push_back(made.back().toTensorVector());
    }
    out = stacked(outs, level), kept = stacked(lists, level);
  }
  for (auto& x : out) stack->emplace_back(std::move(x));
  if (kInner) stack->emplace_back(std::move(kept));
}

// NAME_backward.
template <class In> void boxed_vmap_backward(const c10::OperatorHandle& op, Stack* stack) {
  using Result = typename In::Result;
  const auto guard = without_vmap();
  const VmapLevel level;
  const c10::IValue* at = first_argument(op, *stack);
  const Lowered<Result> d(pull<Result>(at), level);
  Result saved;
  each_tensor(saved, [&](Tensor& x, const Field& field) {
    if (field.saved) x = from_value(*at++);
  });
  const Lowered<Result> final(saved, level);
  const Lowered<In> in(pull<In>(at), level);
  std::vector<Tensor> kept = at->toTensorVector();
  torch::jit::drop(*stack, arguments_of(op));
  const auto call = [&](const Result& d, const Result& final, const In& in,
                        const std::vector<Tensor>& kept) {
    Stack arguments;
    push(arguments, d);
    each_tensor(final, [&](const Tensor& x, const Field& field) {
      if (field.saved) arguments.push_back(to_value(x));
    });
    push(arguments, in);
    arguments.emplace_back(kept);
    return called(op, std::move(arguments))[0].toTensorVector();
  };
  if (!kept.empty() && level.is_mark(kept.back())) {
    kept.pop_back();
    Fold fold{level.size()};
    if constexpr (requires { in.of.cu_seqlens; }) fold.packed = in.of.cu_seqlens.defined();
    const In all = with_bounds_of_all(folded(in, fold), in, fold);
    auto list = call(folded(d, fold), folded(final, fold), all, kept);
    size_t i = 0;
    each_tensor(all, [&](const Tensor& x, const Field& field) {
      if (field.kind == Kind::kIndex) return;
      if (x.defined() && list[i].sym_sizes() == x.sym_sizes())
        list[i] = level.raise(fold.out(list[i], field));
      ++i;
    });
    stack->emplace_back(std::move(list));
    return;
  }
  std::vector<std::pair<Tensor, bool>> lists;
  bool any = d.any || final.any || in.any;
  for (const Tensor& x : kept) lists.push_back(level.lower(x)), any |= lists.back().second;
  if (!any) {
    stack->emplace_back(call(d.of, final.of, in.of, kept));
    return;
  }
  std::vector<std::vector<Tensor>> grads;
  for (int64_t i = 0; i < level.size().guard_int(__FILE__, __LINE__); ++i) {
    std::vector<Tensor> own;
    for (const auto& [x, batched] : lists) own.push_back(batched ? x.select(0, i) : x);
    grads.push_back(call(d.at(i), final.at(i), in.at(i), own));
  }
  stack->emplace_back(stacked(grads, level));
}

}  // namespace lrnn::ops
