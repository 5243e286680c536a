#include "ops/selective_scan/selective_scan.h"

#include "ops/declare.h"
#include "ops/torch.h"

namespace lrnn::ops {

void SelectiveScan::check() const {
  lrnn::check(C.defined() || !(D.defined() || z.defined()),
              "[selective_scan] D and z shape the output, which needs C");
}

SelectiveScanResult selective_scan(const SelectiveScan& in) {
  return apply_op(in, selective_scan_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<SelectiveScan, selective_scan>(m); }

}  // namespace lrnn::ops
