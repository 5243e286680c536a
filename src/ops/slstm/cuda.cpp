#include "kernels/cuda/slstm/slstm.h"
#include "ops/cuda/stream.h"
#include "ops/slstm/fill.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

struct SlstmCuda {
  using In = Slstm;

  static std::vector<Tensor> keep(const In& in) { return kept_steps(in); }
  static void forward(const In& in, SlstmResult& out, std::vector<Tensor>& kept) {
    const OnDevice on(in.wx);
    kernels::SlstmForward p;
    fill(p, in);
    fill_results(p, out, kept);
    kernels::cuda::slstm_forward(p, on.stream());
  }

  // The gates again as one product over all tokens, then the walk from the end, which leaves the
  // gates' gradients in their place; what the weights get is products of those.
  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.wx);
    kernels::SlstmBackward p;
    fill(p, b.in);
    fill_gradients(p, b, grads);
    const int64_t H = p.H, D = p.D, rows = p.B * p.T;
    const Tensor previous = at::zeros({H, rows, D}, b.in.R.options());
    kernels::cuda::slstm_previous(p, p.steps, previous.data_ptr(), on.stream());
    const Tensor matrix = b.in.R.view({H, D, 4 * D});
    Tensor from_input =
        b.in.wx.permute({2, 0, 1, 3, 4}).to(matrix.scalar_type()).reshape({H, rows, 4 * D});
    if (p.bias) from_input = from_input + b.in.bias.view({H, 1, 4 * D});
    const Tensor gates = at::baddbmm(from_input, previous, matrix),
                 transposed = matrix.transpose(1, 2).contiguous();
    kernels::cuda::slstm_backward(p, transposed.const_data_ptr(), gates.data_ptr(), on.stream());
    grads.wx = gates.view({H, p.B, p.T, 4, D})
                   .permute({1, 2, 0, 3, 4})
                   .to(b.in.wx.scalar_type())
                   .contiguous();
    grads.R = at::bmm(previous.transpose(1, 2), gates).view({H, D, 4, D});
    if (p.bias) grads.bias = gates.sum(1).view({H, 4, D});
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<SlstmCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
