#include <ATen/autocast_mode.h>

#include "ops/again.h"
#include "ops/inner.h"
#include "ops/node.h"
#include "ops/norm/norm.h"
#include "ops/torch.h"

// x + y and its RMSNorm in one call, forward and backward.
namespace lrnn::ops {
namespace {

using ForwardFunction = std::tuple<Tensor, Tensor>(const Tensor& x, const MaybeTensor& y,
                                                   const Tensor& weight, double eps,
                                                   at::ScalarType h);
using BackwardFunction = std::tuple<Tensor, Tensor, Tensor>(const MaybeTensor& ds, const Tensor& dh,
                                                            const Tensor& s, const Tensor& weight,
                                                            double eps, at::ScalarType y);

struct AddNormBackward final : torch::autograd::Node, MakesAgain {
  SavedVariable s, weight;
  at::ScalarType y_type = at::kFloat, h_type = at::kFloat;
  double eps = 0;
  bool added = false;  // s is an output, the first one, and not x

  std::string name() const override { return "AddNormBackward"; }
  void release_variables() override { s.reset_data(), weight.reset_data(), forget_made(); }
  Tensor stream() { return added ? s.unpack(shared_from_this()) : s.unpack(); }
  variable_list apply(variable_list&& grad) override {
    check_last_derivative("add_norm", grad, " on a GPU");
    std::lock_guard<std::mutex> lock(mutex_);
    const Tensor ds = added ? grad[0] : Tensor(), dh = added ? grad[1] : grad[0];
    if (!dh.defined()) {
      if (!added || !ds.defined()) return variable_list(3);
      return {ds, ds.to(y_type), Tensor()};
    }
    static const auto op = find_op<BackwardFunction>("lrnn::add_norm_backward");
    auto [dx, dy, dweight] = below_autograd(
        [&] { return op.call(maybe(ds), dh, stream(), weight.unpack(), eps, y_type); });
    return {dx, added ? dy : Tensor(), dweight};
  }

 protected:
  std::vector<Tensor> make_again() override {  // the stream is kept
    static const auto op = find_op<ForwardFunction>("lrnn::add_norm");
    const Tensor h = std::get<1>(op.call(stream(), {}, weight.unpack(), eps, h_type));
    return added ? std::vector<Tensor>{Tensor(), h} : std::vector<Tensor>{h};
  }
};

// What a matrix product would read of x.
at::ScalarType product_type(const Tensor& x) {
  const auto device = x.device().type();
  return at::autocast::is_autocast_enabled(device) && x.scalar_type() == at::kFloat
             ? at::autocast::get_autocast_dtype(device)
             : x.scalar_type();
}

bool fits(const Tensor& x, const Tensor& y, const Tensor& weight) {
  constexpr int64_t kMost = 4096;  // values of a row
  const auto known = [](const Tensor& t) {
    return t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16;
  };
  return x.is_cuda() && x.dim() >= 2 && x.size(-1) <= kMost && known(x) && weight.dim() == 1 &&
         weight.size(0) == x.size(-1) && weight.scalar_type() == at::kFloat &&
         (!y.defined() || (y.sizes() == x.sizes() && known(y) && y.device() == x.device()));
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "add_norm(Tensor x, Tensor? y, Tensor weight, float eps, ScalarType h) -> (Tensor s, Tensor "
      "h)");
  m.def(
      "add_norm_backward(Tensor? ds, Tensor dh, Tensor s, Tensor weight, float eps, ScalarType y) "
      "-> (Tensor, Tensor, Tensor)");
}

}  // namespace

std::pair<Tensor, Tensor> add_norm_definition(const Tensor& x, const Tensor& y,
                                              const Tensor& weight, double eps) {
  const Tensor s = y.defined() ? x + y : x;
  return {s, rms_norm_definition(s, weight, eps)};
}

std::pair<Tensor, Tensor> add_norm(const Tensor& x, const Tensor& y, const Tensor& weight,
                                   double eps, bool for_products) {
  if (!fits(x, y, weight) || any_tangent(x, y, weight)) {
    const Tensor s = y.defined() ? x + y : x;
    return {s, rms_norm(s, weight, eps)};
  }
  static const auto op = find_op<ForwardFunction>("lrnn::add_norm");
  const auto type = for_products ? product_type(x) : x.scalar_type();
  const auto node = make_node<AddNormBackward>(x, y, weight);
  auto [s, h] = below_autograd([&] { return op.call(x, maybe(y), weight, eps, type); });
  if (!y.defined()) s = x;
  if (!node) return {s, h};
  node->added = y.defined(), node->eps = eps, node->h_type = type;
  if (y.defined()) node->y_type = y.scalar_type();
  node->weight = SavedVariable(weight, false);
  if (y.defined()) torch::autograd::set_history(s, node);
  torch::autograd::set_history(h, node);
  node->s = SavedVariable(s, /*is_output=*/y.defined());
  return {s, h};
}

}  // namespace lrnn::ops
