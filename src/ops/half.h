#pragma once
#include "base/error.h"
#include "ops/fields.h"

// float16 has no kernels: such inputs are computed in float32, which holds every one of their
// values, and the results are rounded back. On a GPU that is slower than bfloat16.
namespace lrnn::ops {

template <class In> bool is_half(const In& in) {
  const Tensor& main = main_of(in);
  return main.defined() && main.scalar_type() == at::kHalf;
}

// What must have the type of the main input still has to.
template <class In> In from_half(In in) {
  const char* main = "";
  each_tensor(in, [&](Tensor&, const Field& field) {
    if (field.need == Need::kMain) main = field.name;
  });
  each_tensor(in, [&](Tensor& x, const Field& field) {
    if (!x.defined() || field.kind == Kind::kIndex || field.kind == Kind::kWide) return;
    if (field.kind == Kind::kIo)
      check(x.scalar_type() == at::kHalf, "[", In::kName, "] ", field.name, " is ", x.scalar_type(),
            ", but it must have the dtype of ", main);
    if (field.kind == Kind::kCast) x = x.to(at::kHalf);  // read in the type of the main input
    if (x.scalar_type() == at::kHalf) x = x.to(at::kFloat);
  });
  return in;
}

template <class Result> Result to_half(Result out) {
  each_tensor(out, [&](Tensor& x, const Field& field) {
    if (x.defined() && field.kind == Kind::kIo) x = x.to(at::kHalf);
  });
  return out;
}

}  // namespace lrnn::ops
