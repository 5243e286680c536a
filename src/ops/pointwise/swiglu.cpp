#include "ops/node.h"
#include "ops/pointwise/pointwise.h"
#include "ops/rows.h"

namespace lrnn::ops {
namespace {

using kernels::rows::Swiglu;
using kernels::rows::table;

void check_swiglu(const Tensor& gate, const Tensor& up) {
  check(gate.dim() >= 1, "[swiglu] gate must have at least one dimension");
  check(gate.sym_sizes() == up.sym_sizes(), "[swiglu] gate and up must have one shape, got ",
        gate.sym_sizes(), " and ", up.sym_sizes());
  check(gate.scalar_type() == up.scalar_type() && gate.device() == up.device(),
        "[swiglu] gate and up must have one dtype and device, got ", gate.scalar_type(), " on ",
        gate.device(), " and ", up.scalar_type(), " on ", up.device());
}

Tensor swiglu_cpu(const Tensor& gate, const Tensor& up) {
  check_swiglu(gate, up);
  return with_element("swiglu", gate.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    Tensor h = unfilled(gate);
    const RowView g = row_view(gate), u = row_view(up);
    const Swiglu<Io> a{g.data<Io>(), u.data<Io>(), g.stride, u.stride, g.D};
    Io* out = static_cast<Io*>(h.mutable_data_ptr());
    Ranges(g.rows, g.D).each([&](int64_t, int64_t first, int64_t last) {
      table<Io>().swiglu(a, first, last, out);
    });
    return h;
  });
}

// Rows of dgate and dup are `stride` apart.
void swiglu_gradient(const Tensor& dh, const Tensor& gate, const Tensor& up, const Tensor& dgate,
                     const Tensor& dup, int64_t stride) {
  check_swiglu(gate, up);
  check_gradient("swiglu", dh, gate);
  with_element("swiglu", gate.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    const RowView g = row_view(gate), u = row_view(up), grad = row_view(dh);
    const Swiglu<Io> a{g.data<Io>(), u.data<Io>(), g.stride, u.stride, g.D};
    Io *to_gate = static_cast<Io*>(dgate.mutable_data_ptr()),
       *to_up = static_cast<Io*>(dup.mutable_data_ptr());
    Ranges(g.rows, g.D).each([&](int64_t, int64_t first, int64_t last) {
      table<Io>().swiglu_backward(a, first, last, grad.data<Io>(), grad.stride, to_gate, to_up,
                                  stride);
    });
  });
}

std::tuple<Tensor, Tensor> swiglu_backward_cpu(const Tensor& dh, const Tensor& gate,
                                               const Tensor& up) {
  Tensor dgate = unfilled(gate), dup = unfilled(up);
  swiglu_gradient(dh, gate, up, dgate, dup, gate.size(-1));
  return {dgate, dup};
}

void check_halves(const Tensor& both) {
  check(both.dim() >= 1 && both.sym_size(-1) % 2 == 0,
        "[swiglu] one tensor must hold two halves side by side, got ", both.sym_sizes());
}

Tensor swiglu_halves_cpu(const Tensor& both) {
  check_halves(both);
  const int64_t D = both.size(-1) / 2;
  return swiglu_cpu(both.narrow(-1, 0, D), both.narrow(-1, D, D));
}

Tensor swiglu_halves_backward_cpu(const Tensor& dh, const Tensor& both) {
  check_halves(both);
  const int64_t D = both.size(-1) / 2;
  Tensor dboth = unfilled(both);
  swiglu_gradient(dh, both.narrow(-1, 0, D), both.narrow(-1, D, D), dboth.narrow(-1, 0, D),
                  dboth.narrow(-1, D, D), 2 * D);
  return dboth;
}

Tensor call_swiglu(const Tensor& gate, const Tensor& up) {
  static const auto op = find_op<decltype(swiglu_cpu)>("lrnn::swiglu");
  return op.call(gate, up);
}

Tensor call_swiglu_halves(const Tensor& both) {
  static const auto op = find_op<decltype(swiglu_halves_cpu)>("lrnn::swiglu_halves");
  return op.call(both);
}

struct SwigluBackward final : torch::autograd::Node {
  SavedVariable gate, up;
  std::string name() const override { return "SwigluBackward"; }
  void release_variables() override { gate.reset_data(), up.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    static const auto op = find_op<decltype(swiglu_backward_cpu)>("lrnn::swiglu_backward");
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return {Tensor(), Tensor()};
    auto [dgate, dup] =
        backward_call(grad, [&] { return op.call(grad[0], gate.unpack(), up.unpack()); });
    return {dgate, dup};
  }
};

struct SwigluHalvesBackward final : torch::autograd::Node {
  SavedVariable both;
  std::string name() const override { return "SwigluHalvesBackward"; }
  void release_variables() override { both.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    static const auto op =
        find_op<decltype(swiglu_halves_backward_cpu)>("lrnn::swiglu_halves_backward");
    std::lock_guard<std::mutex> lock(mutex_);
    if (!grad[0].defined()) return {Tensor()};
    return {backward_call(grad, [&] { return op.call(grad[0], both.unpack()); })};
  }
};

Tensor swiglu_autograd(const Tensor& gate, const Tensor& up) {
  if (any_tangent(gate, up)) {
    check_swiglu(gate, up);
    return swiglu_definition(gate, up);
  }
  const auto node = make_node<SwigluBackward>(gate, up);
  if (node) node->gate = SavedVariable(gate, false), node->up = SavedVariable(up, false);
  Tensor h = below_autograd([&] { return call_swiglu(gate, up); });
  if (node) torch::autograd::set_history(h, node);
  return h;
}

Tensor swiglu_halves_autograd(const Tensor& both) {
  if (has_tangent(both)) {
    check_halves(both);
    const auto halves = both.chunk(2, -1);
    return swiglu_definition(halves[0], halves[1]);
  }
  const auto node = make_node<SwigluHalvesBackward>(both);
  if (node) node->both = SavedVariable(both, false);
  Tensor h = below_autograd([&] { return call_swiglu_halves(both); });
  if (node) torch::autograd::set_history(h, node);
  return h;
}

Tensor swiglu_halves_meta(const Tensor& both) {
  check_halves(both);
  auto size = both.sym_sizes().vec();
  size.back() = size.back() / 2;
  return at::empty_symint(size, both.options());
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def("swiglu(Tensor gate, Tensor up) -> Tensor");
  m.def("swiglu_backward(Tensor dh, Tensor gate, Tensor up) -> (Tensor, Tensor)");
  m.def("swiglu_halves(Tensor gate_up) -> Tensor");
  m.def("swiglu_halves_backward(Tensor dh, Tensor gate_up) -> Tensor");
}
TORCH_LIBRARY_IMPL(lrnn, CPU, m) {
  m.impl("swiglu", swiglu_cpu);
  m.impl("swiglu_backward", swiglu_backward_cpu);
  m.impl("swiglu_halves", swiglu_halves_cpu);
  m.impl("swiglu_halves_backward", swiglu_halves_backward_cpu);
}
TORCH_LIBRARY_IMPL(lrnn, Meta, m) {
  m.impl("swiglu", [](const Tensor& gate, const Tensor& up) {
    check_swiglu(gate, up);
    return unfilled(gate);
  });
  m.impl("swiglu_backward", [](const Tensor&, const Tensor& gate, const Tensor& up) {
    return std::tuple(unfilled(gate), unfilled(up));
  });
  m.impl("swiglu_halves", swiglu_halves_meta);
  m.impl("swiglu_halves_backward",
         [](const Tensor&, const Tensor& both) { return unfilled(both); });
}
TORCH_LIBRARY_IMPL(lrnn, Autograd, m) {
  m.impl("swiglu", swiglu_autograd);
  m.impl("swiglu_halves", swiglu_halves_autograd);
}

}  // namespace

Tensor swiglu(const Tensor& gate, const Tensor& up) { return call_swiglu(gate, up); }
Tensor swiglu(const Tensor& gate_up) { return call_swiglu_halves(gate_up); }

}  // namespace lrnn::ops
