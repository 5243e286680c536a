#include <ATen/autocast_mode.h>

#include "model/block.h"
#include "ops/node.h"

namespace lrnn::model {
namespace {

using ops::SavedVariable;
using ops::variable_list;

// Autocast as it was in forward: backward is called outside of it, maybe in another thread. Casts
// that forward made are not there any more.
class AutocastAsItWas {
 public:
  AutocastAsItWas(bool on, at::ScalarType dtype, c10::DeviceType device)
      : device_(device), before_(at::autocast::is_autocast_enabled(device)) {
    at::autocast::set_autocast_enabled(device, on);
    if (on) at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::clear_cache();
    at::autocast::increment_nesting();
  }
  ~AutocastAsItWas() {
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, before_);
  }
  AutocastAsItWas(const AutocastAsItWas&) = delete;
  AutocastAsItWas& operator=(const AutocastAsItWas&) = delete;

 private:
  c10::DeviceType device_;
  bool before_;
};

// A leaf with the same numbers, whose gradient is that of x.
Tensor leaf(const Tensor& x) {
  return x.defined() ? x.detach().requires_grad_(x.is_floating_point()) : x;
}

struct BlockAgain final : torch::autograd::Node {
  std::shared_ptr<Block> block;
  SavedVariable x, y;
  Tensor token;
  mixers::State before;
  Context context;
  bool autocast = false;
  at::ScalarType autocast_type = at::kFloat;
  c10::DeviceType device = c10::kCPU;

  std::string name() const override { return "BlockAgain"; }
  void release_variables() override { x.reset_data(), y.reset_data(); }
  variable_list apply(variable_list&& grad) override {
    ops::check_last_derivative("recompute", grad);
    std::lock_guard<std::mutex> lock(mutex_);
    const Tensor in = leaf(x.unpack()), add = leaf(y.unpack());
    variable_list roots, seeds;
    {
      const AutocastAsItWas same(autocast, autocast_type, device);
      const at::AutoGradMode with_gradients(true);
      auto state = before;
      const Stream out = block->forward({{in, token}, add}, state, context);
      for (const auto& [root, seed] : {std::pair(out.x.x, grad[0]), std::pair(out.y, grad[1])})
        if (root.defined() && seed.defined()) roots.push_back(root), seeds.push_back(seed);
    }
    // Into the parameters' own gradients, and into those of the two leaves.
    if (!roots.empty()) torch::autograd::backward(roots, seeds);
    return {in.grad(), add.defined() ? add.grad() : Tensor()};
  }
};

}  // namespace

Stream run_again_in_backward(const std::shared_ptr<Block>& block, const Stream& in,
                             mixers::State& state, const Context& context) {
  const auto node = ops::make_node<BlockAgain>(in.x.x, in.y);
  if (!node) return block->forward(in, state, context);
  node->block = block, node->context = context, node->before = state;
  node->x = SavedVariable(in.x.x, false), node->y = SavedVariable(in.y, false);
  node->token = in.x.token;
  node->device = in.x.x.device().type();
  node->autocast = at::autocast::is_autocast_enabled(node->device);
  if (node->autocast) node->autocast_type = at::autocast::get_autocast_dtype(node->device);
  // With gradients, which are dropped with `out`: some kernels have another order of sums without.
  const Stream out = block->forward({{leaf(in.x.x), in.x.token}, leaf(in.y)}, state, context);
  for (auto& x : state) x = x.defined() ? x.detach() : x;
  Tensor x = out.x.x.detach(), y = out.y.defined() ? out.y.detach() : out.y;
  torch::autograd::set_history(x, node);
  if (y.defined()) torch::autograd::set_history(y, node);
  return {{x, {}}, y};
}

}  // namespace lrnn::model
