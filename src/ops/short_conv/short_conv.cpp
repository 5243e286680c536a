#include "ops/short_conv/short_conv.h"

#include "ops/by_sequence.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

ShortConvResult dense_short_conv(const ShortConv& in) {
  const int64_t B = in.x.size(0), T = in.x.size(1), D = in.x.size(2), W = in.weight.size(2);
  const Tensor past = in.state.defined() ? in.state.to(in.x.scalar_type())
                                         : torch::zeros({B, D, W}, in.x.options());
  const Tensor x = torch::cat({past.transpose(1, 2), in.x}, 1);  // [B,W+T,D]
  const auto wide = at::promoteTypes(in.x.scalar_type(), torch::kFloat32);
  Tensor y = torch::zeros({B, T, D}, in.x.options().dtype(wide));
  for (int64_t w = 0; w < W; ++w)
    y = y + in.weight.select(2, w).select(1, 0).to(wide) * x.slice(1, w + 1, w + 1 + T).to(wide);
  if (in.bias.defined()) y = y + in.bias.to(wide);
  if (in.silu) y = torch::silu(y);
  return {y.to(in.x.scalar_type()), x.slice(1, T, T + W).transpose(1, 2)};
}

}  // namespace

ShortConvResult short_conv_definition(const ShortConv& in) {
  return by_sequence(in, dense_short_conv);
}

ShortConvResult short_conv(const ShortConv& in) { return apply_op(in, short_conv_definition); }

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<ShortConv, short_conv>(m); }

}  // namespace lrnn::ops
