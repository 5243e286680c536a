#include <torch/library.h>

#include "base/error.h"
#include "kernels/cuda/rows/draw_token.h"
#include "ops/cuda/stream.h"
#include "ops/draw_token/draw_token.h"
#include "ops/inner.h"
#include "ops/torch.h"

// The CUDA kernel of draw_tokens: the op has checked its inputs.
namespace lrnn::ops::cuda {
namespace {

torch::Tensor draw_tokens(const torch::Tensor& logits, const torch::Tensor& u, double temperature,
                          int64_t top_k, double top_p) {
  const OnDevice on(logits);
  const auto type = logits.scalar_type();
  torch::Tensor rows = type == at::kFloat || type == at::kBFloat16 ? logits : logits.to(at::kFloat);
  if (rows.stride(1) != 1) rows = rows.contiguous();
  check(rows.size(1) < int64_t(1) << 31, "[draw_token] too many tokens: ", rows.size(1));
  const torch::Tensor numbers = u.contiguous(),
                      ids = at::empty({rows.size(0)}, rows.options().dtype(at::kLong));
  kernels::cuda::DrawTokens p;
  p.type = kernel_type(rows), p.rows = rows.size(0), p.V = rows.size(1);
  p.logits = rows.const_data_ptr(), p.stride = rows.stride(0);
  p.u = numbers.const_data_ptr<double>();
  p.temperature = temperature, p.top_k = top_k, p.top_p = top_p;
  kernels::cuda::draw_tokens(p, ids.mutable_data_ptr<int64_t>(), on.stream());
  return ids;
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) { m.impl("draw_tokens", draw_tokens); }

}  // namespace lrnn::ops::cuda
