#include "kernels/cuda/titans/titans.h"
#include "ops/cuda/stream.h"
#include "ops/titans/fill.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

struct TitansCuda {
  using In = Titans;

  static std::vector<Tensor> keep(const In& in) {
    const OnDevice on(in.k);
    kernels::TitansInputs p;
    fill(p, in);
    return {at::empty({kernels::cuda::diagonal_kept(p), p.H, 2, p.K, p.V},
                      options_of(in.k, Kind::kWide))};
  }
  static void forward(const In& in, TitansResult& out, std::vector<Tensor>& kept) {
    const OnDevice on(in.k);
    check(in.k.size(3) <= kernels::cuda::kMostTitansKeys, "[titans] the GPU kernels have room for ",
          kernels::cuda::kMostTitansKeys, " keys, got ", in.k.size(3));
    kernels::TitansForward p;
    fill(p, in);
    fill_results(p, out, kept);
    kernels::cuda::titans_forward(p, on.stream());
  }
  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.k);
    kernels::TitansBackward p;
    fill(p, b.in);
    fill_gradients(p, b, grads);
    const Tensor sums =
        at::empty({kernels::cuda::titans_groups(p), p.B, p.T, p.H, kernels::cuda::titans_sums(p)},
                  options_of(b.in.k, Kind::kWide));
    kernels::cuda::titans_backward(p, sums.data_ptr(), on.stream());
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<TitansCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
