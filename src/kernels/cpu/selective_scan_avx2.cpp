#if defined(__x86_64__)
#define LRNN_ISA avx2
#define LRNN_VECTOR_BYTES 32
#include "kernels/cpu/selective_scan_units.inc"

namespace lrnn::kernels {
const SelectiveScanUnits kSelectiveScanAvx2 = avx2::kScanUnits;
}
#endif
