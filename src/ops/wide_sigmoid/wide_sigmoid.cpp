#include "ops/wide_sigmoid/wide_sigmoid.h"

#include "ops/declare.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

WideSigmoidResult wide_sigmoid_of(const WideSigmoid& in) {
  return apply_op<WideSigmoid>(in, [](const WideSigmoid& in) -> WideSigmoidResult {
    return {wide_sigmoid_definition(in.x, in.scale)};
  });
}

struct WideSigmoidCpu {
  using In = WideSigmoid;
  static void forward(const In& in, WideSigmoidResult& out, std::vector<Tensor>&) {
    if (in.x.scalar_type() == out.y.scalar_type())
      at::sigmoid_out(out.y, in.x);
    else
      out.y.copy_(at::sigmoid(in.x));  // rounded, as torch computes it
    if (in.scale != 1) out.y.mul_(in.scale);
  }
  static void backward(const Backward<In>& b, In& grads) {
    const Tensor y = at::sigmoid(b.in.x).to(wide_type(b.in.x));
    grads.x = at::sigmoid_backward(b.d.y, y);
    if (b.in.scale != 1) grads.x.mul_(b.in.scale);
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  declare<WideSigmoid, wide_sigmoid_of>(m);
  cpu_back_end<WideSigmoidCpu>(m);
}

}  // namespace

Tensor wide_sigmoid(const Tensor& x, double scale) { return wide_sigmoid_of({x, scale}).y; }

Tensor wide_sigmoid_definition(const Tensor& x, double scale) {
  return at::sigmoid(x).to(wide_type(x)) * scale;
}

}  // namespace lrnn::ops
