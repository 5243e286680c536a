#include "mixers/shift.h"

#include "ops/take/take.h"

namespace lrnn::mixers {

Tensor shifted(const Tensor& x, Tensor& state, const Context& context) {
  const int64_t B = x.size(0), T = x.size(1), rows = B * T;
  if (!context.cu_seqlens.defined() && T > 0) {
    const Tensor first = state.defined() ? state.to(x.scalar_type()).unsqueeze(1)
                                         : torch::zeros({B, 1, x.size(2)}, x.options());
    state = x.select(1, T - 1);
    return torch::cat({first, x.slice(1, 0, T - 1)}, 1);
  }
  const Tensor ends = context.last_rows(B, T, 1).squeeze(1);  // [S], -1 for an empty sequence
  Tensor begins = torch::arange(0, rows, std::max<int64_t>(T, 1));
  if (context.cu_seqlens.defined()) begins = context.cu_seqlens.slice(0, 0, -1);
  const Tensor flat = x.flatten(0, 1);
  const Tensor table = state.defined() ? torch::cat({flat, state.to(x.scalar_type())}) : flat;
  const Tensor from_state =
      state.defined() ? torch::arange(rows, rows + ends.size(0)) : torch::full_like(ends, -1);
  const Tensor filled = ends >= 0;
  const Tensor before = torch::arange(-1, rows - 1);
  before.index_put_({begins.masked_select(filled)}, from_state.masked_select(filled));
  const auto out = ops::take({table}, before)[0].view_as(x);
  state = ops::take({table}, torch::where(filled, ends, from_state))[0];
  return out;
}

}  // namespace lrnn::mixers
