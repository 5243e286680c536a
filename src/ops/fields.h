#pragma once
#include <string_view>
#include <type_traits>

#include "ops/sizes.h"

// Walks over the fields of an op's struct (ops/field.h).
namespace lrnn::ops {

using torch::Tensor;
using Slots = c10::SmallVector<Slot, 8>;

template <class X, class OnTensor, class OnSetting> struct FieldVisit {
  OnTensor& tensor;
  OnSetting& setting;
  void operator()(X& x, const Field& field) const { tensor(x, field); }
  template <class T> void operator()(T& x, const char* name) const { setting(x, name); }
};

// Calls tensor(x, field) and setting(x, name) in order.
template <class Self, class OnTensor, class OnSetting>
void each_field(Self& of, OnTensor&& tensor, OnSetting&& setting) {
  using X = std::conditional_t<std::is_const_v<Self>, const Tensor, Tensor>;
  std::remove_const_t<Self>::fields(
      of, FieldVisit<X, std::remove_reference_t<OnTensor>, std::remove_reference_t<OnSetting>>{
              tensor, setting});
}
template <class Self, class OnTensor> void each_tensor(Self& of, OnTensor&& tensor) {
  each_field(of, tensor, [](auto&, const char*) {});
}

template <class T> Slots slots(const T& of) {
  Slots out;
  each_tensor(of, [&](const Tensor& x, const Field& field) { out.push_back({field, &x}); });
  return out;
}
template <class T> c10::SmallVector<Tensor*, 12> tensors(T& of) {
  c10::SmallVector<Tensor*, 12> out;
  each_tensor(of, [&](Tensor& x, const Field&) { out.push_back(&x); });
  return out;
}

template <class In> const Tensor& main_of(const In& in) {
  const Tensor* out = nullptr;
  each_tensor(in, [&](const Tensor& x, const Field& field) {
    if (field.need == Need::kMain) out = &x;
  });
  return *out;
}

// Whether what a field stands beside is there.
template <class T> bool matters(const Field& field, const T& others) {
  bool out = true;
  if (field.beside)
    each_tensor(others, [&](const Tensor& x, const Field& other) {
      if (std::string_view(field.beside) == other.name) out = x.defined();
    });
  return out;
}

}  // namespace lrnn::ops
