#include "model/weight_copies.h"

#include "ops/torch.h"

namespace lrnn::model {

using torch::Tensor;

WeightCopies::WeightCopies(torch::nn::Module& module, torch::Dtype dtype) {
  const torch::NoGradGuard no_grad;
  modules_ = module.modules(/*include_self=*/false);
  for (const auto& one : modules_)
    if (auto* has = dynamic_cast<mixers::HasPacks*>(one.get()))
      for (auto* pack : has->packs()) lend(*pack, dtype);
  for (const auto& one : modules_) {
    auto* layer = dynamic_cast<mixers::Weighted*>(one.get());
    if (!layer || layer->copy.defined() || layer->weight.scalar_type() == dtype) continue;
    layer->copy = layer->weight.detach().to(dtype);
    layers_.push_back(layer);
  }
}

void WeightCopies::lend(mixers::Pack& pack, torch::Dtype dtype) {
  if (pack.members().empty()) return;
  std::vector<Tensor> parts;
  for (const auto& member : pack.members()) {
    if (member->copy.defined()) return;  // somebody else lends it
    parts.push_back(member->weight.detach().to(dtype));
  }
  const Tensor whole = torch::cat(parts, 0);
  int64_t begin = 0;
  for (const auto& member : pack.members()) {
    member->copy = whole.narrow(0, begin, member->weight.size(0));
    begin += member->weight.size(0);
    layers_.push_back(member.get());
  }
  pack.lend(whole);
  packs_.push_back(&pack);
}

WeightCopies::~WeightCopies() {
  for (auto* layer : layers_) layer->copy.reset();
  for (auto* pack : packs_) pack->lend({});
}

}  // namespace lrnn::model
