#include "mixers/mixer.h"

namespace lrnn::mixers {

Tensor Context::last_rows(int64_t batch, int64_t length, int64_t count) const {
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

Tensor Context::lengths(int64_t length) const {
  return cu_seqlens.defined() ? cu_seqlens.diff() : torch::full({1}, length, torch::kInt64);
}

}  // namespace lrnn::mixers
