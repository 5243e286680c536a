#include "ops/draw_token/draw_token.h"

#include "base/error.h"
#include "ops/node.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

void check_rows(const Tensor& logits, const Tensor& u, const Drawing& how) {
  check(logits.dim() == 2 && logits.is_floating_point() && logits.size(1) >= 1,
        "[draw_token] logits must be numbers [B,vocabulary], got ", logits.scalar_type(), " ",
        logits.sizes());
  check(u.dim() == 1 && u.size(0) == logits.size(0) && u.scalar_type() == torch::kFloat64 &&
            u.device() == logits.device(),
        "[draw_token] u must be float64 [", logits.size(0), "] on ", logits.device(), ", got ",
        u.scalar_type(), " ", u.sizes(), " on ", u.device());
  check(how.temperature >= 0 && how.top_k >= 0 && how.top_p > 0,
        "[draw_token] temperature and top_k must not be negative, and top_p above 0, got ",
        how.temperature, ", ", how.top_k, " and ", how.top_p);
}

Tensor on_the_cpu(const Tensor& logits, const Tensor& u, double temperature, int64_t top_k,
                  double top_p) {
  const Drawing how{temperature, top_k, top_p};
  check_rows(logits, u, how);
  const Tensor rows = logits.to(torch::kFloat32).contiguous(), numbers = u.contiguous();
  Tensor ids = torch::empty({rows.size(0)}, torch::kInt64);
  for (int64_t b = 0; b < rows.size(0); ++b)
    ids.mutable_data_ptr<int64_t>()[b] =
        draw_token(rows.const_data_ptr<float>() + b * rows.size(1), rows.size(1), how,
                   numbers.const_data_ptr<double>()[b]);
  return ids;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  m.def(
      "draw_tokens(Tensor logits, Tensor u, float temperature, int top_k, float top_p) -> Tensor");
}
TORCH_LIBRARY_IMPL(lrnn, CPU, m) { m.impl("draw_tokens", on_the_cpu); }

}  // namespace

Tensor draw_tokens(const Tensor& logits, const Tensor& u, const Drawing& how) {
  check_rows(logits, u, how);
  static const auto op = find_op<decltype(on_the_cpu)>("lrnn::draw_tokens");
  return op.call(logits, u, how.temperature, how.top_k, how.top_p);
}

Tensor draw_tokens_definition(const Tensor& logits, const Tensor& u, const Drawing& how) {
  check_rows(logits, u, how);
  const auto [sorted, ids] = logits.to(torch::kFloat64).sort(/*stable=*/true, -1, true);
  if (how.temperature == 0) return ids.select(1, 0);
  const int64_t V = ids.size(1), kept = how.top_k > 0 ? std::min(how.top_k, V) : V;
  Tensor weight = ((sorted - sorted.narrow(1, 0, 1)) / how.temperature).exp().narrow(1, 0, kept);
  // What has its share before it is not needed any more.
  const Tensor before = weight.cumsum(1) - weight, all = weight.sum(1, true);
  Tensor cut = before >= how.top_p * all;
  cut.select(1, 0).fill_(false);
  if (how.top_p < 1) weight = weight.masked_fill(cut, 0);
  const Tensor passed = weight.cumsum(1), mass = passed.narrow(1, kept - 1, 1);
  const Tensor last = (how.top_p < 1 ? cut.logical_not() : torch::ones_like(cut)).sum(1) - 1;
  const Tensor at = torch::minimum((passed <= u.unsqueeze(1) * mass).sum(1), last);
  return ids.gather(1, at.unsqueeze(1)).squeeze(1);
}

}  // namespace lrnn::ops
