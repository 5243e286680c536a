#include "kernels/cuda/selective_scan/selective_scan.h"
#include "ops/cuda/stream.h"
#include "ops/selective_scan/fill.h"
#include "ops/torch.h"

namespace lrnn::ops::cuda {
namespace {

struct ScanCuda {
  using In = SelectiveScan;
  void* stream = nullptr;

  static std::vector<Tensor> keep(const In& in) {
    kernels::SelectiveScanInputs p;
    fill(p, in);
    return {at::empty({kernels::cuda::scan_kept(p), p.D, kernels::cuda::scan_padded(p.N)},
                      options_of(in.u, Kind::kWide))};
  }
  static void forward(const In& in, SelectiveScanResult& out, std::vector<Tensor>& kept) {
    const OnDevice on(in.u);
    check_states(in.A);
    kernels::SelectiveScanForward p;
    fill(p, in);
    if (out.y.defined()) p.y = kernel_rows(out.y);
    p.final_state = out.state.data_ptr();
    if (!kept.empty() && kept[0].numel() > 0) p.states = kept[0].data_ptr();
    kernels::cuda::scan_forward(p, on.stream());
  }
  static void backward(const Backward<In>& b, In& grads) {
    const OnDevice on(b.in.u);
    check_states(b.in.A);
    scan_backward(ScanCuda{on.stream()}, b, grads);
  }

  int64_t groups(const kernels::SelectiveScanBackward& p) const {
    return kernels::cuda::scan_groups(p);
  }
  void run(const kernels::SelectiveScanBackward& p) const {
    kernels::cuda::scan_backward(p, stream);
  }
  Tensor total(const Tensor& partial) const { return partial.sum(0); }

 private:
  static void check_states(const Tensor& A) {
    check(A.size(1) <= kernels::cuda::kMostScanStates,
          "[selective_scan] the GPU kernels keep up to ", kernels::cuda::kMostScanStates,
          " numbers of state per channel, got ", A.size(1));
  }
};

}  // namespace

TORCH_LIBRARY_FRAGMENT(lrnn, m) { back_end<ScanCuda>(m, c10::DispatchKey::CUDA); }

}  // namespace lrnn::ops::cuda
