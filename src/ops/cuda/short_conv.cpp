#include "kernels/cuda/short_conv.h"

#include "ops/cuda/add_parts.h"
#include "ops/cuda/stream.h"
#include "ops/short_conv_cpu.h"
#include "ops/torch.h"

// The CUDA kernels of short_conv and of its gradient.
namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

kernels::Type element_type(const Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat: return kernels::Type::kFloat32;
    case at::kDouble: return kernels::Type::kFloat64;
    case at::kBFloat16: return kernels::Type::kBFloat16;
    default:
      throw Error(cat("[short_conv] works in float32, float64 and bfloat16, got ", x.scalar_type()),
                  "convert the inputs");
  }
}

// What the kernel reads, and the memory behind it.
struct ConvInputs {
  RowView x;
  Tensor weight, bias, state, cu_seqlens;
  kernels::cuda::ShortConv p;

  ConvInputs(const Tensor& x_, const Tensor& weight_, const OptionalTensor& bias_,
             const OptionalTensor& state_, bool silu, const OptionalTensor& cu_seqlens_)
      : x(row_view(x_)) {
    const auto sequences = check_short_conv(x_, weight_, bias_, state_, cu_seqlens_);
    const auto real = computed_in(x_.scalar_type());
    p.type = element_type(x_);
    p.rows = x_.size(0) * x_.size(1), p.T = x_.size(1), p.D = x_.size(2), p.W = weight_.size(2);
    p.S = sequences.guard_int(__FILE__, __LINE__), p.silu = silu;
    p.x = x.tensor.const_data_ptr(), p.stride = x.stride;
    weight = weight_.contiguous();
    p.weight = weight.const_data_ptr(), p.weight_type = element_type(weight);
    if (defined(bias_)) bias = bias_->to(real).contiguous(), p.bias = bias.const_data_ptr();
    if (defined(state_)) {
      state = state_->to(x_.scalar_type()).transpose(1, 2).contiguous();
      p.state = state.const_data_ptr();
    }
    if (defined(cu_seqlens_)) {
      cu_seqlens = cu_seqlens_->to(x_.device()).contiguous();
      p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
    }
  }
};

std::tuple<Tensor, Tensor> short_conv(const Tensor& x, const Tensor& weight,
                                      const OptionalTensor& bias, const OptionalTensor& state,
                                      bool silu, const OptionalTensor& cu_seqlens) {
  const OnDevice on(x);
  const ConvInputs in(x, weight, bias, state, silu, cu_seqlens);
  Tensor y = unfilled(x), next = at::empty({in.p.S, in.p.W, in.p.D}, x.options());
  kernels::cuda::short_conv_forward(in.p, y.data_ptr(), next.data_ptr(), on.stream());
  return {y, next.transpose(1, 2)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> short_conv_backward(
    const Tensor& dy, const OptionalTensor& dnext_, const Tensor& x, const Tensor& weight,
    const OptionalTensor& bias, const OptionalTensor& state, bool silu,
    const OptionalTensor& cu_seqlens) {
  const OnDevice on(x);
  const ConvInputs in(x, weight, bias, state, silu, cu_seqlens);
  check_gradient("short_conv", dy, x);
  const auto& p = in.p;
  const auto real = x.options().dtype(computed_in(x.scalar_type()));
  const RowView grad = row_view(dy);
  Tensor dnext, dstate, dx = unfilled(x), dpre = at::empty({p.rows, p.D}, real);
  kernels::cuda::ShortConvGradient g;
  g.range = kernels::cuda::conv_range(p.rows);
  const int64_t sums = p.W + (defined(bias) ? 1 : 0);
  Tensor partial = at::empty({(p.rows + g.range - 1) / g.range, sums, p.D}, real);
  g.dy = grad.tensor.const_data_ptr(), g.stride = grad.stride;
  if (defined(dnext_)) {
    dnext = dnext_->to(x.scalar_type()).transpose(1, 2).contiguous();
    g.dnext = dnext.const_data_ptr();
  }
  if (defined(state))
    dstate = at::empty({p.S, p.W, p.D}, x.options()), g.dstate = dstate.data_ptr();
  g.dpre = dpre.data_ptr(), g.dx = dx.data_ptr(), g.partial = partial.data_ptr();
  kernels::cuda::short_conv_backward(p, g, on.stream());
  const Tensor total =
      at::empty({p.D, sums}, defined(bias) ? real : real.dtype(weight.scalar_type()));
  add_parts(partial, total, on.stream(), sums);
  const Tensor dweight = total.narrow(1, 0, p.W).to(weight.scalar_type()).contiguous();
  return {dx, dweight.unsqueeze(1),
          defined(bias) ? total.select(1, p.W).to(bias->scalar_type()) : Tensor(),
          defined(state) ? dstate.transpose(1, 2).to(state->scalar_type()) : Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("short_conv", short_conv);
  m.impl("short_conv_backward", short_conv_backward);
}

}  // namespace lrnn::ops::cuda
