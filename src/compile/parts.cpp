#include "compile/parts.h"

#include "base/error.h"
#include "compile/scales.h"
#include "model/checkpoint.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"

namespace lrnn::compile {

using torch::Tensor;

Parts::Parts(const model::Model& model, const Network& net)
    : net_(net), config_(model.config()), tensors_(model::tensors_of(model)) {
  width_ = config_.width;
  const auto dtype = tensors_.at("lm_head.weight").scalar_type();
  units_ = torch::full({width_}, kStreamUnit, dtype);
  for (int64_t f = 0; f < int64_t(net.features.size()); ++f)
    units_[f] = stream_unit(net.features[size_t(f)]);
  for (int64_t i = 0; i < config_.layers; ++i) {
    const std::string prefix = cat("model.layers.", i, ".attn.");
    std::map<std::string, Tensor> own;
    for (const auto& [name, tensor] : tensors_)
      if (name.rfind(prefix, 0) == 0) own[name.substr(prefix.size())] = tensor;
    mixers_.push_back(mixers::make(width_, config_.mixer));
    mixers_.back()->to(dtype);
    model::load_into(*mixers_.back(), own, prefix);
  }
}

Tensor Parts::base(int64_t rows) const {
  Tensor out = torch::zeros({rows, width_}, torch::kFloat64);
  for (int64_t f = 0; f < int64_t(net_.features.size()); ++f)
    out.select(1, f).fill_(net_.features[size_t(f)].offset + net_.features[size_t(f)].initial);
  return out;
}

Tensor Parts::normed(const Tensor& x, const std::string& name) const {
  const Tensor& weight = tensors_.at(name);
  return ops::rms_norm(x.to(weight.scalar_type()) * units_, weight, config_.norm_eps);
}

Tensor Parts::mix(int64_t layer, const Tensor& x, Tensor& state) const {
  mixers::State s = {state * kStateUnit};
  const Tensor n = normed(x, cat("model.layers.", layer, ".attn_norm.weight"));
  const Tensor y = mixers_[size_t(layer)]->forward({n, {}}, s);
  state = s[0] / kStateUnit;
  return x.to(y.scalar_type()) + y / units_;
}

Tensor Parts::look_up(int64_t layer, const Tensor& x) const {
  const std::string name = cat("model.layers.", layer, ".mlp");
  if (config_.mlp.name == "none") return x;
  const Tensor n = normed(x, name + "_norm.weight");
  const auto weight = [&](const char* which) { return tensors_.at(name + which); };
  const Tensor h = ops::swiglu(ops::linear(n, weight(".gate_proj.weight")),
                               ops::linear(n, weight(".up_proj.weight")));
  return x.to(n.scalar_type()) + ops::linear(h, weight(".down_proj.weight")) / units_;
}

Tensor Parts::answer(const Tensor& x) const {
  return ops::linear(normed(x, "model.norm.weight"), tensors_.at("lm_head.weight")).argmax(-1) -
         int64_t(net_.symbols.size());
}

Tensor Parts::observed(int64_t layer, const Tensor& x, const std::string& what) const {
  Tensor out;
  mixers::State state;
  mixers::Context context;
  context.observe = [&](const std::string& name, const Tensor& value) {
    if (name == what) out = value;
  };
  const Tensor n = normed(x, cat("model.layers.", layer, ".attn_norm.weight"));
  mixers_[size_t(layer)]->forward({n, {}}, state, context);
  return out;
}

Tensor Parts::initial_state(int64_t layer) const {
  const auto at = tensors_.find(cat("model.layers.", layer, ".attn.initial_state"));
  return at == tensors_.end() ? Tensor{} : at->second;
}

}  // namespace lrnn::compile
