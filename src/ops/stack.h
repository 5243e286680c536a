#pragma once
#include <torch/library.h>

#include <optional>
#include <string>
#include <vector>

#include "ops/fields.h"
#include "ops/inner.h"

// Structs of fields on torch's stack, where boxed functions find their arguments.
namespace lrnn::ops {

using Stack = torch::jit::Stack;

inline c10::IValue to_value(const Tensor& x) {
  return x.defined() ? c10::IValue(x) : c10::IValue();
}
inline Tensor from_value(const c10::IValue& x) { return x.isNone() ? Tensor() : x.toTensor(); }
inline void from_value(const c10::IValue& from, double& to) { to = from.toDouble(); }
inline void from_value(const c10::IValue& from, bool& to) { to = from.toBool(); }
inline void from_value(const c10::IValue& from, int64_t& to) { to = from.toInt(); }
inline void from_value(const c10::IValue& from, std::string& to) { to = from.toStringRef(); }
inline void from_value(const c10::IValue& from, std::optional<double>& to) {
  to = from.toOptional<double>();
}
inline void from_value(const c10::IValue& from, std::optional<c10::ScalarType>& to) {
  to = from.toOptional<c10::ScalarType>();
}

template <class T> void push(Stack& stack, const T& of) {
  each_field(
      of, [&](const Tensor& x, const Field&) { stack.push_back(to_value(x)); },
      [&](const auto& x, const char*) { stack.emplace_back(x); });
}
// What is not there is empty: torch has no word for it among results.
template <class T> void push_results(Stack& stack, const T& of, const Tensor& like) {
  each_tensor(
      of, [&](const Tensor& x, const Field&) { stack.emplace_back(x.defined() ? x : none(like)); });
}
// Reads a struct from `at` on, and moves `at` behind it.
template <class T> T pull(const c10::IValue*& at) {
  T out;
  each_field(
      out, [&](Tensor& x, const Field&) { x = from_value(*at++); },
      [&](auto& x, const char*) { from_value(*at++, x); });
  return out;
}

// A boxed function's own arguments are the last on the stack: others may lie below.
inline size_t arguments_of(const c10::OperatorHandle& op) { return op.schema().arguments().size(); }
inline const c10::IValue* first_argument(const c10::OperatorHandle& op, const Stack& stack) {
  return stack.data() + stack.size() - arguments_of(op);
}

}  // namespace lrnn::ops
