#include "mixers/mixer.h"

#include "ops/join/join.h"
#include "ops/read_at/read_at.h"
#include "ops/take/take.h"

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

bool Context::reads_ends(int64_t batch, int64_t length) const {
  return read_at.defined() && ops::are_ends(read_at, cu_seqlens, batch, length);
}

Tensor Context::lengths(int64_t length, const torch::Device& device) const {
  if (cu_seqlens.defined()) return cu_seqlens.to(device).diff();
  return torch::full({1}, length, torch::TensorOptions(torch::kInt64).device(device));
}

Tensor Rows::rows(const Tensor& pick) const {
  if (!token.defined() && !pick.defined()) return x;
  if (!token.defined()) return ops::take({x.flatten(0, 1)}, pick)[0];
  if (!pick.defined()) return ops::take({x}, token)[0];
  const Tensor at = pick.to(token.device());
  const Tensor picked = ops::take({token.flatten()}, at)[0];
  return ops::take({x}, picked.masked_fill(at < 0, -1))[0];
}

Tensor Rows::at(const Tensor& read_at) const {
  if (!read_at.defined()) return rows();
  if (!token.defined()) return ops::at_rows(x, read_at);
  return ops::take({x}, ops::at_rows(token, read_at))[0];
}

Tensor Rows::through(const Linear& linear, const Tensor& pick) const {
  // A table is multiplied first and looked up afterwards: vocabulary products instead of B*T.
  if (token.defined()) return Rows{linear.forward(x), token}.rows(pick);
  return linear.forward(rows(pick));
}

std::vector<Tensor> Rows::pieces(const Linear& linear, const std::vector<int64_t>& sizes) const {
  std::vector<ops::Weight> parts;
  int64_t at = 0;
  for (const int64_t size : sizes) parts.push_back(linear.read().rows(at, size)), at += size;
  if (at == linear.weight.size(0) && ops::better_as_one(x, sizes))
    return ops::split(through(linear), sizes, -1);
  const auto out = ops::linears(x, parts);
  return token.defined() ? ops::take(out, token) : out;
}

Tensor Mixer::forward(const Rows& x, State& state, const Context& context) {
  if (!context.read_at.defined() || picks_rows() || context.reads_ends(x.batch(), x.length()))
    return mix(x, state, context);
  Context everywhere = context;
  everywhere.read_at.reset();
  return ops::at_rows(mix(x, state, everywhere), context.read_at);
}

}  // namespace lrnn::mixers
