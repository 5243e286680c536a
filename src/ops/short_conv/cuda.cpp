#include "kernels/cuda/conv/short_conv.h"

#include "ops/cuda/add_parts.h"
#include "ops/cuda/stream.h"
#include "ops/short_conv/cpu.h"
#include "ops/torch.h"
#include "ops/unit_conv/inner.h"

// The CUDA kernels of short_conv and of its gradient.
namespace lrnn::ops::cuda {
namespace {

using kernels::cuda::ConvPieces;
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

// The gradient's inputs: dy in one piece or in several, side by side.
struct ConvGradient {
  std::vector<RowView> dy;
  Tensor dnext;
  kernels::cuda::ShortConvGradient g;

  ConvGradient(const std::vector<Tensor>& dy_, const OptionalTensor& dnext_, const Tensor& x) {
    int64_t begin = 0;
    for (size_t i = 0; i < dy_.size(); ++i) {
      dy.push_back(row_view(dy_[i]));
      g.dy.of[i] = {const_cast<void*>(dy[i].tensor.const_data_ptr()), dy[i].stride, begin};
      begin += dy_[i].size(-1);
    }
    if (!defined(dnext_)) return;
    dnext = dnext_->to(x.scalar_type()).transpose(1, 2).contiguous();
    g.dnext = dnext.const_data_ptr();
  }
};

// dx, and the sums for the weights and, with a bias, for it: [D,W] or [D,W+1].
std::tuple<Tensor, Tensor> backward(const kernels::cuda::ShortConv& p,
                                    kernels::cuda::ShortConvGradient& g, const Tensor& x,
                                    const Tensor& weight, void* stream) {
  const auto real = x.options().dtype(computed_in(x.scalar_type()));
  Tensor dx = unfilled(x), dpre;
  if (!window_serves(p, g)) dpre = at::empty({p.rows, p.D}, real), g.dpre = dpre.data_ptr();
  const auto parts = conv_parts(p, g);
  g.range = parts.range;
  const int64_t sums = p.W + (p.bias ? 1 : 0);
  const Tensor partial = at::empty({parts.count, sums, p.D}, real);
  g.dx = dx.data_ptr(), g.partial = partial.data_ptr();
  kernels::cuda::short_conv_backward(p, g, stream);
  const Tensor total = at::empty({p.D, sums}, p.bias ? real : real.dtype(weight.scalar_type()));
  add_parts(partial, total, stream, sums);
  return {dx, total};
}

std::tuple<Tensor, Tensor> short_conv(const Tensor& x, const Tensor& weight,
                                      const OptionalTensor& bias, const OptionalTensor& state,
                                      bool silu, const OptionalTensor& cu_seqlens) {
  const OnDevice on(x);
  const ConvInputs in(x, weight, bias, state, silu, cu_seqlens);
  const auto& p = in.p;
  Tensor y = unfilled(x), next = at::empty({p.S, p.W, p.D}, x.options());
  kernels::cuda::short_conv_forward(p, {{{y.data_ptr(), p.D, 0}}}, next.data_ptr(), on.stream());
  return {y, next.transpose(1, 2)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> short_conv_backward(
    const Tensor& dy, const OptionalTensor& dnext, const Tensor& x, const Tensor& weight,
    const OptionalTensor& bias, const OptionalTensor& state, bool silu,
    const OptionalTensor& cu_seqlens) {
  const OnDevice on(x);
  const ConvInputs in(x, weight, bias, state, silu, cu_seqlens);
  check_gradient("short_conv", dy, x);
  ConvGradient out({dy}, dnext, x);
  Tensor dstate;
  if (defined(state))
    dstate = at::empty({in.p.S, in.p.W, in.p.D}, x.options()), out.g.dstate = dstate.data_ptr();
  const auto [dx, total] = backward(in.p, out.g, x, weight, on.stream());
  const Tensor dweight = total.narrow(1, 0, in.p.W).to(weight.scalar_type()).contiguous();
  return {dx, dweight.unsqueeze(1),
          defined(bias) ? total.select(1, in.p.W).to(bias->scalar_type()) : Tensor(),
          defined(state) ? dstate.transpose(1, 2).to(state->scalar_type()) : Tensor()};
}

// The units of unit_conv.
void add_units(kernels::cuda::ShortConv& p, int64_t units, int64_t group, double eps) {
  p.units = units, p.group = group, p.eps = float(eps);
}

std::tuple<std::vector<Tensor>, Tensor> unit_conv(const Tensor& x, const Tensor& weight,
                                                  const OptionalTensor& state,
                                                  at::IntArrayRef sizes, int64_t units,
                                                  int64_t group, double eps) {
  const OnDevice on(x);
  ConvInputs in(x, weight, {}, state, true, {});
  check_units(x, sizes, units, group);
  add_units(in.p, units, group, eps);
  const auto in_steps = [&] {
    return unit_conv_in_steps(x, weight, state, sizes, units, group, eps);
  };
  if (sizes.size() > size_t(ConvPieces::kMost)) return in_steps();
  ConvPieces out;
  std::vector<Tensor> y;
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); begin += sizes[i++]) {
    y.push_back(at::empty({x.size(0), x.size(1), sizes[i]}, x.options()));
    out.of[i] = {y[i].data_ptr(), sizes[i], begin};
  }
  if (!window_serves(in.p, out)) return in_steps();
  Tensor next = at::empty({in.p.S, in.p.W, in.p.D}, x.options());
  kernels::cuda::short_conv_forward(in.p, out, next.data_ptr(), on.stream());
  return {y, next.transpose(1, 2)};
}

std::tuple<Tensor, Tensor> unit_conv_backward(at::TensorList dy, const OptionalTensor& dnext,
                                              const Tensor& x, const Tensor& weight,
                                              const OptionalTensor& state, int64_t units,
                                              int64_t group, double eps) {
  const OnDevice on(x);
  ConvInputs in(x, weight, {}, state, true, {});
  check_pieces(dy, x);
  add_units(in.p, units, group, eps);
  if (dy.size() > size_t(ConvPieces::kMost))
    return unit_conv_backward_in_steps(dy, dnext, x, weight, state, units, group, eps);
  ConvGradient out(dy.vec(), dnext, x);
  if (!window_serves(in.p, out.g))
    return unit_conv_backward_in_steps(dy, dnext, x, weight, state, units, group, eps);
  const auto [dx, total] = backward(in.p, out.g, x, weight, on.stream());
  return {dx, total.unsqueeze(1)};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("short_conv", short_conv);
  m.impl("short_conv_backward", short_conv_backward);
  m.impl("unit_conv_forward", unit_conv);
  m.impl("unit_conv_backward", unit_conv_backward);
}

}  // namespace lrnn::ops::cuda
