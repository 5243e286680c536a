#include "ops/mlstm/fill.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

struct MlstmCpu {
  using In = Mlstm;

  // C, n and m at the beginning of every chunk but the first.
  static std::vector<Tensor> keep(const In& in) {
    const auto q = in.q.sym_sizes();
    const c10::SymInt K = q[3], V = in.v.sym_size(3);
    return {at::empty_symint({q[0], q[2], q[1] / kernels::kMlstmChunk, K * V + K + 1},
                             options_of(in.q, Kind::kWide))};
  }
  static void forward(const In& in, MlstmResult& out, std::vector<Tensor>& kept) {
    kernels::MlstmForward p;
    fill(p, in);
    fill_results(p, out);
    if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
    kernels::mlstm_forward(p, parallel());
  }
  static void backward(const Backward<In>& b, In& grads) {
    kernels::MlstmBackward p;
    fill(p, b.in);
    fill_gradients(p, b, grads);
    kernels::mlstm_backward(p, parallel());
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<MlstmCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
