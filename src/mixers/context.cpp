#include "mixers/mixer.h"

namespace lrnn::mixers {

Tensor Context::last_rows(int64_t batch, int64_t length, int64_t count) const {
  Tensor begin, end;
  if (cu_seqlens.defined()) {
    begin = cu_seqlens.slice(0, 0, -1);
    end = cu_seqlens.slice(0, 1);
  } else {
    begin = torch::arange(batch, torch::kInt64) * length;
    end = begin + length;
  }
  const Tensor rows = end.unsqueeze(1) + torch::arange(-count, 0, end.options());
  return rows.masked_fill(rows < begin.unsqueeze(1), -1);
}

Tensor Context::lengths(int64_t length) const {
  return cu_seqlens.defined() ? cu_seqlens.diff() : torch::full({1}, length, torch::kInt64);
}

}  // namespace lrnn::mixers
