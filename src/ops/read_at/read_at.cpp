#include "ops/read_at/read_at.h"

#include "ops/inner.h"
#include "ops/node.h"
#include "ops/take/take.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

Tensor as_rows(const Tensor& x) { return x.reshape({-1, 1, x.size(-1)}); }
Tensor as_matrices(const Tensor& S) { return S.reshape({-1, S.size(2), S.size(3)}); }

struct ReadStateBackward final : torch::autograd::Node {
  SavedVariable q, S;
  double scale = 1;

  std::string name() const override { return "ReadStateBackward"; }
  void release_variables() override { q.reset_data(), S.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return {Tensor(), Tensor()};
    return backward_call(grad, [&]() -> variable_list {
      const Tensor query = q.unpack(), state = S.unpack(), d_o = as_rows(grad[0] * scale);
      return {at::bmm(d_o, as_matrices(state).transpose(1, 2)).view(query.sizes()),
              at::bmm(as_rows(query).transpose(1, 2), d_o).view(state.sizes())};
    });
  }
};

}  // namespace

bool are_ends(const Tensor& rows, const Tensor& cu_seqlens, int64_t B, int64_t T) {
  const bool packed = cu_seqlens.defined();
  const int64_t sequences = packed ? cu_seqlens.size(0) - 1 : B;
  if (!rows.device().is_cpu() || (packed && !cu_seqlens.device().is_cpu()) ||
      rows.size(0) != sequences)
    return false;
  const Tensor at = rows.contiguous(), bounds = packed ? cu_seqlens.contiguous() : Tensor();
  const int64_t* const row = at.const_data_ptr<int64_t>();
  const int64_t* const cu = packed ? bounds.const_data_ptr<int64_t>() : nullptr;
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t begin = cu ? cu[s] : s * T, end = cu ? cu[s + 1] : begin + T;
    if (row[s] != end - 1 || begin == end) return false;
  }
  return true;
}

Tensor at_rows(const Tensor& x, const Tensor& rows) {
  const Tensor flat = x.flatten(0, 1);
  if (rows.size(0) == flat.size(0)) return flat.unsqueeze(0);
  // For a tiny model on the CPU the way through torch's dispatcher is long; on a GPU launches
  // count.
  if (x.device().is_cpu()) return ops::take({flat}, rows.unsqueeze(0))[0];
  return pick(flat, rows).unsqueeze(0);
}

Tensor spread(const Tensor& y, const Tensor& rows, int64_t B, int64_t T) {
  std::vector<int64_t> shape = y.sizes().slice(1).vec();
  shape[0] = B * T;
  const Tensor all = at::zeros(shape, y.options()).index_copy(0, rows, y.squeeze(0));
  return all.unflatten(0, {B, T});
}

Tensor read_state_definition(const Tensor& q, const Tensor& S, double scale) {
  const auto no_autocast = without_autocast();
  return scale * at::matmul(q.unsqueeze(-2), S).squeeze(-2);
}

Tensor read_state(const Tensor& q, const Tensor& S, double scale) {
  if (any_tangent(q, S)) return read_state_definition(q, S, scale);
  const auto node = make_node<ReadStateBackward>(q, S);
  if (node) {
    node->q = SavedVariable(q, false), node->S = SavedVariable(S, false);
    node->scale = scale;
  }
  Tensor o = below_autograd([&] {
    const auto no_autocast = without_autocast();
    const Tensor wide = at::bmm(as_rows(q), as_matrices(S)).mul_(scale);
    return at::_unsafe_view(wide, {q.size(0), q.size(1), S.size(3)});
  });
  if (node) torch::autograd::set_history(o, node);
  return o;
}

}  // namespace lrnn::ops
