#include "ops/inner.h"
#include "ops/linear_cross_entropy/linear_cross_entropy.h"
#include "ops/torch.h"

namespace lrnn::ops {

LinearCrossEntropyResult linear_cross_entropy_definition(const LinearCrossEntropy& in) {
  const auto wide = wide_type(in.h);
  const torch::Tensor target = in.target.to(in.h.device(), at::kLong).clamp_min(-1),
                      weight = in.weight.to(in.h.scalar_type()).to(wide),
                      logits = at::linear(in.h.to(wide), weight);
  return {in.share * at::nll_loss(at::log_softmax(logits, -1), target, {}, at::Reduction::Sum, -1),
          logits.detach().argmax(-1).eq(target).sum().to(wide)};
}

}  // namespace lrnn::ops
