#include "ops/gated_mlp/gated_mlp.h"

#include "ops/join/join.h"
#include "ops/linears/linears.h"
#include "ops/node.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// With fewer rows the kernel has too few blocks for the chip, and the products by themselves are
// done sooner.
constexpr int64_t kFewestRows = 4096;

using MlpFits = bool(const Tensor& x, int64_t hidden);
using MlpForward = Tensor(const Tensor& x, const Tensor& gate, const Tensor& up,
                          const Tensor& down);
using MlpBackward = std::tuple<Tensor, Tensor, Tensor>(const Tensor& dy, const Tensor& x,
                                                       const Tensor& gate, const Tensor& up,
                                                       const Tensor& down);

struct GatedMlpBackward final : torch::autograd::Node {
  SavedVariable x, gate, up, down;
  std::string name() const override { return "GatedMlpBackward"; }
  void release_variables() override {
    x.reset_data(), gate.reset_data(), up.reset_data(), down.reset_data();
  }
  variable_list apply(variable_list&& grad) override {
    check_last_derivative("gated_mlp", grad, " on a GPU");
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return variable_list(4);
    static const auto op = find_op<MlpBackward>("lrnn::gated_mlp_backward");
    return below_autograd([&]() -> variable_list {
      const Tensor in = x.unpack(), rows = in.reshape({-1, in.size(-1)}),
                   dy = grad[0].reshape(rows.sizes());
      const Tensor opening = gate.unpack();
      const int64_t hidden = opening.size(0);
      const auto [dx, h, dboth] = op.call(dy, rows, opening, up.unpack(), down.unpack());
      const auto dw = pieces(at::mm(dboth.t(), rows), {hidden, hidden}, 0);
      return {dx.view(in.sizes()), dw[0], dw[1], at::mm(dy.t(), h)};
    });
  }
};

// Whether there is a kernel for them, and it is worth it.
bool in_one(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down) {
  const int64_t D = x.size(-1);
  if (!x.is_cuda() || x.scalar_type() != at::kBFloat16 || x.numel() < kFewestRows * D) return false;
  for (const Tensor* w : {&gate, &up, &down})
    if (w->scalar_type() != at::kBFloat16 || w->device() != x.device() || !w->is_contiguous() ||
        reinterpret_cast<uintptr_t>(w->const_data_ptr()) % 16 != 0)
      return false;
  if (gate.sizes() != up.sizes() || gate.size(1) != D || down.size(0) != D ||
      down.size(1) != gate.size(0))
    return false;
  static const auto op = find_op<MlpFits>("lrnn::gated_mlp_fits");
  return op.call(x, gate.size(0));
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("gated_mlp_fits(Tensor x, int hidden) -> bool");
  m.def("gated_mlp(Tensor x, Tensor gate, Tensor up, Tensor down) -> Tensor");
  m.def(
      "gated_mlp_backward(Tensor dy, Tensor x, Tensor gate, Tensor up, Tensor down) -> (Tensor, "
      "Tensor, Tensor)");
}

}  // namespace

Tensor gated_mlp_definition(const Tensor& x, const Tensor& gate, const Tensor& up,
                            const Tensor& down) {
  return at::linear(at::silu(at::linear(x, gate)) * at::linear(x, up), down);
}

Tensor gated_mlp(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down) {
  return gated_mlp(x, WeightStack{{gate, up}, {}, {}}, down);
}

Tensor gated_mlp(const Tensor& x_, const WeightStack& gate_up, const Weight& down_) {
  const Tensor x = for_product(x_), down = down_.for_product(),
               gate = gate_up.parts.at(0).for_product(), up = gate_up.parts.at(1).for_product();
  if (!in_one(x, gate, up, down) || any_tangent(x, gate, up, down)) {
    if (better_as_one(x, {gate.size(0), up.size(0)}))
      return ops::linear(swiglu(ops::linear(x, gate_up)), down);
    const auto both = linears(x, {gate, up});
    return ops::linear(swiglu(both[0], both[1]), down);
  }
  const auto node = make_node<GatedMlpBackward>(x, gate, up, down);
  if (node) {
    node->x = SavedVariable(x, false), node->gate = SavedVariable(gate, false);
    node->up = SavedVariable(up, false), node->down = SavedVariable(down, false);
  }
  static const auto op = find_op<MlpForward>("lrnn::gated_mlp");
  Tensor y = below_autograd([&] {
    return op.call(x.reshape({-1, x.size(-1)}), gate, up, down).view(x.sizes());
  });
  if (node) torch::autograd::set_history(y, node);
  return y;
}

}  // namespace lrnn::ops
