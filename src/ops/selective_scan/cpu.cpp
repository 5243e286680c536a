#include "ops/rows.h"
#include "ops/selective_scan/fill.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

struct ScanCpu {
  using In = SelectiveScan;

  static std::vector<Tensor> keep(const In& in) {
    return {at::empty_symint({in.u.sym_size(0), in.u.sym_size(1) / kernels::kSelectiveScanChunk,
                              in.A.sym_size(1), in.u.sym_size(2)},
                             options_of(in.u, Kind::kWide))};
  }
  static void forward(const In& in, SelectiveScanResult& out, std::vector<Tensor>& kept) {
    kernels::SelectiveScanForward p;
    fill(p, in);
    if (out.y.defined()) p.y = kernel_rows(out.y);
    p.final_state = out.state.data_ptr();
    if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
    kernels::selective_scan_forward(p, parallel());
  }
  static void backward(const Backward<In>& b, In& grads) { scan_backward(ScanCpu(), b, grads); }

  int64_t groups(const kernels::SelectiveScanBackward& p) const {
    return kernels::selective_scan_groups(p.D, p.type);
  }
  void run(const kernels::SelectiveScanBackward& p) const {
    kernels::selective_scan_backward(p, parallel());
  }
  Tensor total(const Tensor& partial) const {
    const Tensor rows = partial.flatten(1);
    return (rows.size(0) > 0 ? add_up(rows) : at::zeros({rows.size(1)}, rows.options()))
        .view(partial.sizes().slice(1));
  }
};

TORCH_LIBRARY_FRAGMENT(lrnn, m) { cpu_back_end<ScanCpu>(m); }

}  // namespace
}  // namespace lrnn::ops
