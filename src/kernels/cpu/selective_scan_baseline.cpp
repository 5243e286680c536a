#define LRNN_ISA baseline
#define LRNN_VECTOR_BYTES 16
#include "kernels/cpu/selective_scan_units.inc"

namespace lrnn::kernels {
const SelectiveScanUnits kSelectiveScanBaseline = baseline::kScanUnits;
}
