#include "ops/read_state/read_state.h"

#include "ops/inner.h"
#include "ops/node.h"
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
