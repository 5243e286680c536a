#include "kernels/cuda/train/gated_mlp.h"

#include <torch/library.h>

#include "base/error.h"
#include "ops/cuda/stream.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

using torch::Tensor;

bool gated_mlp_has(const Tensor& x, int64_t hidden) {
  const OnDevice on(x);
  return kernels::cuda::gated_mlp_fits(x.size(-1), hidden);
}

// Rows on 16 bytes, where they lie if they can.
Tensor on_pieces(const Tensor& x) {
  const bool ok = x.stride(1) == 1 && x.stride(0) % 8 == 0 &&
                  reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
  return ok ? x : x.clone(at::MemoryFormat::Contiguous);
}
const uint16_t* bits_of(const Tensor& x) {
  return static_cast<const uint16_t*>(x.const_data_ptr());
}
uint16_t* bits_to(const Tensor& x) { return static_cast<uint16_t*>(x.data_ptr()); }

kernels::cuda::GatedMlp mlp_of(const Tensor& x, const Tensor& gate, const Tensor& up,
                               const Tensor& down) {
  const int64_t D = x.size(1), hidden = gate.size(0);
  const auto is = [&](const Tensor& w, int64_t rows, int64_t columns) {
    return w.dim() == 2 && w.size(0) == rows && w.size(1) == columns && w.is_contiguous() &&
           w.scalar_type() == at::kBFloat16 &&
           reinterpret_cast<uintptr_t>(w.const_data_ptr()) % 16 == 0;
  };
  check(x.scalar_type() == at::kBFloat16 && kernels::cuda::gated_mlp_fits(D, hidden) &&
            is(gate, hidden, D) && is(up, hidden, D) && is(down, D, hidden),
        "[gated_mlp] there is no kernel for x ", x.sizes(), " and matrices ", gate.sizes(), ", ",
        up.sizes(), " and ", down.sizes(), " in ", x.scalar_type());
  return {x.size(0), D, hidden, bits_of(x), x.stride(0), bits_of(gate), bits_of(up), bits_of(down)};
}

Tensor gated_mlp(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down) {
  const OnDevice on(x);
  const Tensor in = on_pieces(x), y = at::empty(x.sizes(), x.options());
  kernels::cuda::gated_mlp_forward(mlp_of(in, gate, up, down), bits_to(y), on.stream());
  return y;
}

std::tuple<Tensor, Tensor, Tensor> gated_mlp_backward(const Tensor& dy, const Tensor& x,
                                                      const Tensor& gate, const Tensor& up,
                                                      const Tensor& down) {
  const OnDevice on(x);
  check(dy.sizes() == x.sizes() && dy.scalar_type() == x.scalar_type(),
        "[gated_mlp] the gradient must be ", x.sizes(), " in ", x.scalar_type(), ", got ",
        dy.sizes(), " in ", dy.scalar_type());
  const Tensor in = on_pieces(x), grad = on_pieces(dy), dx = at::empty(x.sizes(), x.options()),
               h = at::empty({x.size(0), gate.size(0)}, x.options()),
               dboth = at::empty({x.size(0), 2 * gate.size(0)}, x.options());
  kernels::cuda::gated_mlp_backward(
      mlp_of(in, gate, up, down),
      {bits_of(grad), grad.stride(0), bits_to(dx), bits_to(h), bits_to(dboth)}, on.stream());
  return {dx, h, dboth};
}

}  // namespace

TORCH_LIBRARY_IMPL(lrnn, CUDA, m) {
  m.impl("gated_mlp_fits", gated_mlp_has);
  m.impl("gated_mlp", gated_mlp);
  m.impl("gated_mlp_backward", gated_mlp_backward);
}

}  // namespace lrnn::ops::cuda
