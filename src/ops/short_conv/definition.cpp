#include "ops/short_conv/short_conv.h"
#include "ops/torch.h"

// The definition; see the header. Plain torch, any dtype, never optimised.
namespace lrnn::ops {
namespace {

using torch::Tensor;

ShortConvResult dense(const ShortConv& in) {
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
  if (!in.cu_seqlens.defined()) return dense(in);
  std::vector<Tensor> y, state;
  for (int64_t s = 0; s + 1 < in.cu_seqlens.size(0); ++s) {
    const int64_t begin = in.cu_seqlens[s].item<int64_t>(),
                  end = in.cu_seqlens[s + 1].item<int64_t>();
    const auto out = dense({.x = in.x.slice(1, begin, end),
                            .weight = in.weight,
                            .bias = in.bias,
                            .state = in.state.defined() ? in.state.slice(0, s, s + 1) : in.state,
                            .silu = in.silu,
                            .cu_seqlens = {}});
    y.push_back(out.y), state.push_back(out.state);
  }
  return {torch::cat(y, 1), torch::cat(state, 0)};
}

}  // namespace lrnn::ops
