#include "mixers/mixer.h"

namespace lrnn::mixers {

namespace {

// Without a word from the host, which would stop a GPU's stream.
Tensor last_rows_of(const Tensor& begins, const Tensor& ends, int64_t count) {
  const Tensor rows = ends.unsqueeze(1) + torch::arange(-count, 0, ends.options());
  return rows.masked_fill(rows < begins.unsqueeze(1), -1);
}

}  // namespace

Tensor Context::last_rows(int64_t batch, int64_t length, int64_t count,
                          const torch::Device& device) const {
  if (cu_seqlens.defined() && (!device.is_cpu() || !cu_seqlens.device().is_cpu())) {
    const Tensor at = device.is_cpu() ? cu_seqlens : cu_seqlens.to(device);
    return last_rows_of(at.slice(0, 0, -1), at.slice(0, 1), count);
  }
  if (!device.is_cpu()) {
    const auto on = torch::TensorOptions(torch::kInt64).device(device);
    const Tensor begins = torch::arange(batch, on) * length;
    return last_rows_of(begins, begins + length, count);
  }
  const Tensor packed = cu_seqlens.defined() ? cu_seqlens.contiguous() : cu_seqlens;
  const int64_t* const at = packed.defined() ? packed.const_data_ptr<int64_t>() : nullptr;
  const int64_t sequences = at ? packed.size(0) - 1 : batch;
  Tensor out = torch::empty({sequences, count}, torch::kInt64);
  int64_t* to = out.mutable_data_ptr<int64_t>();
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t begin = at ? at[s] : s * length, end = at ? at[s + 1] : begin + length;
    for (int64_t row = end - count; row < end; ++row) *to++ = row < begin ? -1 : row;
  }
  return out;
}

Tensor Context::lengths(int64_t length, const torch::Device& device) const {
  if (cu_seqlens.defined()) return cu_seqlens.to(device).diff();
  return torch::full({1}, length, torch::TensorOptions(torch::kInt64).device(device));
}

}  // namespace lrnn::mixers
