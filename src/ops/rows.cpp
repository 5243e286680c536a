#include "ops/rows.h"

namespace lrnn::ops {

RowView row_view(const torch::Tensor& x) {
  const int64_t D = x.size(-1), rows = D ? x.numel() / D : 0;
  if (x.is_contiguous()) return {x, rows, D, D};
  bool uniform = x.stride(-1) == 1 || D == 1;
  int64_t stride = -1, next = 0;  // of the innermost real dimension, and what the one outside needs
  for (int64_t i = x.dim() - 2; i >= 0 && uniform; --i) {
    if (x.size(i) == 1) continue;
    if (stride < 0)
      stride = x.stride(i);
    else
      uniform = x.stride(i) == next;
    next = x.stride(i) * x.size(i);
  }
  if (!uniform) return {x.contiguous(), rows, D, D};
  return {x, rows, D, stride < 0 ? D : stride};
}

void check_parameter(const char* op, const char* name, const torch::Tensor& parameter,
                     const torch::Tensor& x) {
  const auto dtype = parameter.scalar_type();
  check(parameter.device() == x.device(), "[", op, "] ", name, " must be on ", x.device(),
        " as x is, got ", parameter.device());
  check(dtype == x.scalar_type() || dtype == computed_in(x.scalar_type()), "[", op, "] ", name,
        " must be ", x.scalar_type(), " as x is, or float32 beside bfloat16, got ", dtype);
}

torch::Tensor add_up(const torch::Tensor& partial) {
  if (partial.size(0) == 1) return partial.squeeze(0);
  const int64_t ranges = partial.size(0), n = partial.size(1);
  auto total = at::empty({n}, partial.options());
  const auto run = [&](auto zero) {
    using R = decltype(zero);
    const R* from = partial.const_data_ptr<R>();
    R* to = total.mutable_data_ptr<R>();
    std::fill(to, to + n, zero);
    for (int64_t i = 0; i < ranges; ++i)
      for (int64_t j = 0; j < n; ++j) to[j] += from[i * n + j];
  };
  partial.scalar_type() == at::kDouble ? run(double{}) : run(float{});
  return total;
}

}  // namespace lrnn::ops
