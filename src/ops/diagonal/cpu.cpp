#include "ops/diagonal/diagonal.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

struct DiagonalCpu {
  static std::vector<Tensor> keep(const Diagonal& in) {
    const auto k = in.k.sym_sizes();
    return {at::empty_symint({k[0], k[2], k[1] / kernels::kDiagonalChunk, k[3], in.v.sym_size(3)},
                             options_of(in.k, Kind::kWide))};
  }
  static void forward(const Diagonal& in, const DiagonalResult& out,
                      const std::vector<Tensor>& kept) {
    kernels::DiagonalForward p;
    fill(p, in);
    if (out.o.defined()) p.o = kernel_rows(out.o);
    p.final_state = out.state.data_ptr();
    if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
    kernels::diagonal_forward(p, parallel());
  }
  static void backward(const Diagonal& in, const DiagonalResult& d, const std::vector<Tensor>& kept,
                       const Diagonal& grads) {
    kernels::DiagonalBackward p;
    fill(p, in);
    if (!grads.q.defined()) p.q = {};
    fill_gradients(p, d, grads);
    p.states = kept[0].const_data_ptr();
    kernels::diagonal_backward(p, parallel());
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) {
  cpu_back_end<DiagonalBackEnd<GatedLinearAttention, DiagonalCpu>>(m);
  cpu_back_end<DiagonalBackEnd<Rwkv7, DiagonalCpu>>(m);
}

}  // namespace
}  // namespace lrnn::ops
