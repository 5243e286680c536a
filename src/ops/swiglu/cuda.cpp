#include "kernels/cuda/rows/rows.h"
#include "ops/back_end.h"
#include "ops/cuda/stream.h"
#include "ops/rows.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"

// The CUDA kernels of SwiGLU.
namespace lrnn::ops::cuda {
namespace {

kernels::cuda::RowArray swiglu_array(const RowView& x) { return {x.tensor.data_ptr(), x.stride}; }

void swiglu_rows(const Swiglu& in, const Tensor& h) {
  const OnDevice on(in.gate);
  const RowView gate = row_view(in.gate), up = row_view(in.up);
  kernels::cuda::swiglu_forward({kernel_type(in.gate), gate.rows, gate.D}, swiglu_array(gate),
                                swiglu_array(up), {h.data_ptr(), gate.D}, on.stream());
}

// Rows of the gradients are `stride` apart.
void swiglu_gradients(const Swiglu& in, const Tensor& dh, const Swiglu& grads, int64_t stride) {
  const OnDevice on(in.gate);
  const RowView d = row_view(dh), gate = row_view(in.gate), up = row_view(in.up);
  kernels::cuda::swiglu_backward({kernel_type(in.gate), gate.rows, gate.D}, swiglu_array(d),
                                 swiglu_array(gate), swiglu_array(up),
                                 {grads.gate.data_ptr(), stride}, {grads.up.data_ptr(), stride},
                                 on.stream());
}

struct SwigluCuda {
  using In = Swiglu;
  static constexpr bool kAsGiven = true;

  static void forward(const In& in, SwigluResult& out, std::vector<Tensor>&) {
    swiglu_rows(in, out.h);
  }
  // Side by side: the products they come from are often one.
  static In gradients(const In& in, const SwigluResult&) {
    auto sizes = in.gate.sizes().vec();
    sizes.back() *= 2;
    return halves_of(at::empty(sizes, in.gate.options()));
  }
  static void backward(const Backward<In>& b, In& grads) {
    swiglu_gradients(b.in, b.d.h, grads, 2 * b.in.gate.size(-1));
  }
};

struct SwigluHalvesCuda {
  using In = SwigluHalves;
  static constexpr bool kAsGiven = true;

  static void forward(const In& in, SwigluResult& out, std::vector<Tensor>&) {
    swiglu_rows(halves_of(in.gate_up), out.h);
  }
  static void backward(const Backward<In>& b, In& grads) {
    swiglu_gradients(halves_of(b.in.gate_up), b.d.h, halves_of(grads.gate_up),
                     b.in.gate_up.size(-1));
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  back_end<SwigluCuda>(m, c10::DispatchKey::CUDA);
  back_end<SwigluHalvesCuda>(m, c10::DispatchKey::CUDA);
}

}  // namespace lrnn::ops::cuda
