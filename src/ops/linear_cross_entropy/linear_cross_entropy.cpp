#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#include "ops/declare.h"
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

LinearCrossEntropyResult linear_cross_entropy(const LinearCrossEntropy& in) {
  return apply_op<LinearCrossEntropy>(in, linear_cross_entropy_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<LinearCrossEntropy, linear_cross_entropy>(m); }

RowScores score_rows(const Tensor& h, const Tensor& weight, const Tensor& target) {
  const torch::NoGradGuard no_grad;
  const auto no_autocast = without_autocast();
  check_inputs(LinearCrossEntropy{h, weight, target});
  const int64_t R = h.size(0), C = LinearCrossEntropy::kRowsAtOnce;
  const Tensor w = weight.to(h.scalar_type()), asked = target.to(h.device(), at::kLong);
  RowScores out{at::empty({R}, h.options().dtype(wide_type(h))),
                at::empty({R}, h.options().dtype(at::kBool))};
  for (int64_t first = 0; first < R; first += C) {
    const int64_t n = std::min(C, R - first);
    const Tensor logits = at::mm(h.narrow(0, first, n), w.t()), t = asked.narrow(0, first, n),
                 none = t.lt(0),
                 at_target = logits.gather(1, t.clamp_min(0).unsqueeze(1)).squeeze(1);
    // logsumexp reads the logits as they lie, where log_softmax would write as many again.
    out.loss.narrow(0, first, n)
        .copy_((at::logsumexp(logits.to(out.loss.scalar_type()), {1}) - at_target)
                   .masked_fill(none, 0));
    out.right.narrow(0, first, n).copy_(logits.argmax(1).eq(t));
  }
  return out;
}

}  // namespace lrnn::ops
