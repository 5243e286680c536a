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

torch::Tensor add_up(const torch::Tensor& partial) {
  if (partial.size(0) == 1) return partial.squeeze(0);
  const int64_t ranges = partial.size(0), n = partial.size(1);
  auto total = at::empty({n}, partial.options());
  if (partial.scalar_type() == at::kDouble)
    add_up(partial.const_data_ptr<double>(), ranges, n, total.mutable_data_ptr<double>());
  else
    add_up(partial.const_data_ptr<float>(), ranges, n, total.mutable_data_ptr<float>());
  return total;
}

}  // namespace lrnn::ops
