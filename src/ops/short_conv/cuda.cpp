#include "kernels/cuda/conv/short_conv.h"
#include "ops/cuda/stream.h"
#include "ops/declare.h"
#include "ops/rows.h"
#include "ops/short_conv/short_conv.h"
#include "ops/torch.h"

// The CUDA kernels of short_conv and of its gradient.
namespace lrnn::ops::cuda {
namespace {

using kernels::cuda::ConvPieces;

// What the kernel reads, and the memory behind it.
struct ConvInputs {
  RowView x;
  Tensor weight, bias, state, cu_seqlens;
  kernels::cuda::ShortConv p;

  explicit ConvInputs(const ShortConv& in) : x(row_view(in.x)) {
    p.type = kernel_type(in.x);
    p.rows = in.x.size(0) * in.x.size(1), p.T = in.x.size(1), p.D = in.x.size(2);
    p.W = in.weight.size(2), p.S = in.x.size(0), p.silu = in.silu;
    p.x = x.tensor.const_data_ptr(), p.stride = x.stride;
    weight = in.weight.contiguous();
    p.weight = weight.const_data_ptr(), p.weight_type = kernel_type(weight);
    if (in.bias.defined()) {
      bias = in.bias.to(wide_type(in.x)).contiguous();
      p.bias = bias.const_data_ptr();
    }
    if (in.state.defined()) {
      state = in.state.to(in.x.scalar_type()).transpose(1, 2).contiguous();
      p.state = state.const_data_ptr();
    }
    if (in.cu_seqlens.defined()) {
      cu_seqlens = checked_offsets(ShortConv::kName, in.cu_seqlens, in.x);
      p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
    }
  }
};

// The gradient's inputs: dy in one piece or in several, side by side.
struct ConvGradient {
  std::vector<RowView> dy;
  Tensor dnext;
  kernels::cuda::ShortConvGradient g;

  ConvGradient(const std::vector<Tensor>& dy_, const Tensor& dnext_, const Tensor& x) {
    int64_t begin = 0;
    for (size_t i = 0; i < dy_.size(); ++i) {
      dy.push_back(row_view(dy_[i]));
      g.dy.of[i] = {const_cast<void*>(dy[i].tensor.const_data_ptr()), dy[i].stride, begin};
      begin += dy_[i].size(-1);
    }
    if (!dnext_.defined()) return;
    dnext = dnext_.to(x.scalar_type()).transpose(1, 2).contiguous();
    g.dnext = dnext.const_data_ptr();
  }
};

// Fills dx and gives the sums for the weights and, with a bias, for it: [D,W] or [D,W+1].
Tensor conv_backward(const ConvInputs& in, kernels::cuda::ShortConvGradient& g, const Tensor& dx,
                     void* stream) {
  const auto& p = in.p;
  const auto real = dx.options().dtype(wide_type(dx));
  Tensor dpre;
  if (!window_serves(p, g)) dpre = at::empty({p.rows, p.D}, real), g.dpre = dpre.data_ptr();
  const auto parts = conv_parts(p, g);
  g.range = parts.range;
  const int64_t sums = p.W + (p.bias ? 1 : 0);
  const Tensor partial = at::empty({parts.count, sums, p.D}, real);
  g.dx = dx.data_ptr(), g.partial = partial.data_ptr();
  kernels::cuda::short_conv_backward(p, g, stream);
  const Tensor total = at::empty({p.D, sums}, p.bias ? real : in.weight.options());
  add_parts(partial, total, stream, sums);
  return total;
}

struct ShortConvCuda {
  using In = ShortConv;
  static constexpr bool kAsGiven = true;  // the kernels read weights of either type

  static void forward(const In& given, ShortConvResult& out, std::vector<Tensor>&) {
    const OnDevice on(given.x);
    const ConvInputs in(given);
    kernels::cuda::short_conv_forward(in.p, {{{out.y.data_ptr(), in.p.D, 0}}}, out.state.data_ptr(),
                                      on.stream());
  }

  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.x);
    const ConvInputs in(b.in);
    ConvGradient out({b.d.y.defined() ? b.d.y : at::zeros_like(b.in.x)}, b.d.state, b.in.x);
    if (b.in.state.defined()) {
      const Tensor dstate = at::empty({in.p.S, in.p.W, in.p.D}, b.in.x.options());
      out.g.dstate = dstate.data_ptr(), grads.state = dstate.transpose(1, 2);
    }
    const Tensor total = conv_backward(in, out.g, grads.x, on.stream());
    grads.weight =
        total.narrow(1, 0, in.p.W).to(b.in.weight.scalar_type()).contiguous().unsqueeze(1);
    if (b.in.bias.defined()) grads.bias = total.select(1, in.p.W);
  }
};

// The units of unit_conv.
void add_units(kernels::cuda::ShortConv& p, int64_t units, int64_t group, double eps) {
  p.units = units, p.group = group, p.eps = float(eps);
}

std::tuple<std::vector<Tensor>, Tensor> unit_conv(const Tensor& x, const Tensor& weight,
                                                  const MaybeTensor& state, at::IntArrayRef sizes,
                                                  int64_t units, int64_t group, double eps) {
  const OnDevice on(x);
  const ShortConv conv = conv_of(x, weight, state);
  check_inputs(conv);
  ConvInputs in(conv);
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

std::tuple<Tensor, Tensor> unit_conv_backward(at::TensorList dy, const MaybeTensor& dnext,
                                              const Tensor& x, const Tensor& weight,
                                              const MaybeTensor& state, int64_t units,
                                              int64_t group, double eps) {
  const OnDevice on(x);
  ConvInputs in(conv_of(x, weight, state));
  check_pieces(dy, x);
  add_units(in.p, units, group, eps);
  if (dy.size() > size_t(ConvPieces::kMost))
    return unit_conv_backward_in_steps(dy, dnext, x, weight, state, units, group, eps);
  ConvGradient out(dy.vec(), or_undefined(dnext), x);
  if (!window_serves(in.p, out.g))
    return unit_conv_backward_in_steps(dy, dnext, x, weight, state, units, group, eps);
  const Tensor dx = unfilled(x), total = conv_backward(in, out.g, dx, on.stream());
  return {dx, total.unsqueeze(1)};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<ShortConvCuda>(m, c10::DispatchKey::CUDA); }
TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("unit_conv_forward", unit_conv);
  m.impl("unit_conv_backward", unit_conv_backward);
}

}  // namespace lrnn::ops::cuda
