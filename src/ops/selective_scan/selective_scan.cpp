#include "ops/selective_scan/selective_scan.h"

#include "ops/declare.h"
#include "ops/read_at/read_at.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"
#include "ops/wide_matmul/wide_matmul.h"

namespace lrnn::ops {
namespace {

// At the ends of sequences the state alone runs, and is read once.
SelectiveScanResult scan_at_rows(const SelectiveScan& in) {
  SelectiveScan all = in;
  const Tensor rows = std::exchange(all.read_at, {});
  all.u_at.reset();
  const int64_t B = in.u.size(0), T = in.u.size(1);
  if (are_ends(rows, in.cu_seqlens, B, T)) {
    all.C.reset(), all.D.reset(), all.z.reset();
    auto out = selective_scan(all);
    const auto wide = out.state.scalar_type();
    Tensor y = wide_matmul(out.state, in.C.squeeze(0).to(wide).unsqueeze(-1)).squeeze(-1);
    if (in.D.defined()) y = y + in.D * in.u_at.squeeze(0);
    y = y.to(in.u.scalar_type());
    out.y = (in.z.defined() ? swiglu(in.z.squeeze(0), y) : y).unsqueeze(0);
    return out;
  }
  all.C = spread(in.C, rows, B, T);
  if (in.z.defined()) all.z = spread(in.z, rows, B, T);
  auto out = selective_scan(all);
  out.y = at_rows(out.y, rows);
  return out;
}

}  // namespace

void SelectiveScan::check() const {
  lrnn::check(C.defined() || !(D.defined() || z.defined()),
              "[selective_scan] D and z shape the output, which needs C");
}

SelectiveScanResult selective_scan(const SelectiveScan& in) {
  if (in.read_at.defined()) return scan_at_rows(in);
  return apply_op(in, selective_scan_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<SelectiveScan, selective_scan>(m); }

}  // namespace lrnn::ops
