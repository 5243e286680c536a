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

ShortConvResult short_conv_ends(const ShortConv& in, const Tensor& lengths) {
  ShortConv window = in;
  if (in.state.defined()) {
    // A sequence of n < W tokens leaves the newest W - n columns of the old state in its window.
    const int64_t W = in.weight.size(2);
    const Tensor from = lengths.unsqueeze(1) + torch::arange(W, lengths.options());
    const Tensor old = in.state.transpose(1, 2).to(in.x.scalar_type());
    const Tensor index = from.clamp_max(W - 1).unsqueeze(-1).expand_as(old);
    window.x = in.x + old.gather(1, index).masked_fill((from >= W).unsqueeze(-1), 0);
    window.state.reset();
  }
  auto out = short_conv(window);
  out.y = out.y.slice(1, -1).transpose(0, 1);
  return out;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<ShortConv, short_conv>(m); }

}  // namespace lrnn::ops
