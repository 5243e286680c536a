#include "ops/back_end.h"
#include "ops/rows.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"

// silu(gate) times up, of CPU tensors.
namespace lrnn::ops {
namespace {

using kernels::rows::table;

void swiglu_rows(const Swiglu& in, const Tensor& h) {
  with_element("swiglu", in.gate.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    const RowView gate = row_view(in.gate), up = row_view(in.up);
    const kernels::rows::Swiglu<Io> a{gate.data<Io>(), up.data<Io>(), gate.stride, up.stride,
                                      gate.D};
    Io* const out = static_cast<Io*>(h.mutable_data_ptr());
    Ranges(gate.rows, gate.D).each([&](int64_t, int64_t first, int64_t last) {
      table<Io>().swiglu(a, first, last, out);
    });
  });
}

// Rows of the gradients are `stride` apart.
void swiglu_gradients(const Swiglu& in, const Tensor& dh, const Swiglu& grads, int64_t stride) {
  with_element("swiglu", in.gate.scalar_type(), [&](auto element) {
    using Io = decltype(element);
    const RowView gate = row_view(in.gate), up = row_view(in.up), d = row_view(dh);
    const kernels::rows::Swiglu<Io> a{gate.data<Io>(), up.data<Io>(), gate.stride, up.stride,
                                      gate.D};
    Io *const dgate = static_cast<Io*>(grads.gate.mutable_data_ptr()),
              *const dup = static_cast<Io*>(grads.up.mutable_data_ptr());
    Ranges(gate.rows, gate.D).each([&](int64_t, int64_t first, int64_t last) {
      table<Io>().swiglu_backward(a, first, last, d.data<Io>(), d.stride, dgate, dup, stride);
    });
  });
}

struct SwigluCpu {
  using In = Swiglu;
  static void forward(const In& in, SwigluResult& out, std::vector<Tensor>&) {
    swiglu_rows(in, out.h);
  }
  static void backward(const Backward<In>& b, In& grads) {
    swiglu_gradients(b.in, b.d.h, grads, b.in.gate.size(-1));
  }
};

struct SwigluHalvesCpu {
  using In = SwigluHalves;
  static void forward(const In& in, SwigluResult& out, std::vector<Tensor>&) {
    swiglu_rows(halves_of(in.gate_up), out.h);
  }
  static void backward(const Backward<In>& b, In& grads) {
    swiglu_gradients(halves_of(b.in.gate_up), b.d.h, halves_of(grads.gate_up),
                     b.in.gate_up.size(-1));
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  cpu_back_end<SwigluCpu>(m);
  cpu_back_end<SwigluHalvesCpu>(m);
}

}  // namespace
}  // namespace lrnn::ops
