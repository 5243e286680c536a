#include "ops/titans/fill.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

struct TitansCpu {
  using In = Titans;

  static std::vector<Tensor> keep(const In& in) {
    const auto k = in.k.sym_sizes();
    return {at::empty_symint({k[0], k[2], k[1] / kernels::kTitansChunk, 2, k[3], in.v.sym_size(3)},
                             options_of(in.k, Kind::kWide))};
  }
  static void forward(const In& in, TitansResult& out, std::vector<Tensor>& kept) {
    kernels::TitansForward p;
    fill(p, in);
    fill_results(p, out, kept);
    kernels::titans_forward(p, parallel());
  }
  static void backward(const Backward<In>& b, In& grads) {
    kernels::TitansBackward p;
    fill(p, b.in);
    fill_gradients(p, b, grads);
    kernels::titans_backward(p, parallel());
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<TitansCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
