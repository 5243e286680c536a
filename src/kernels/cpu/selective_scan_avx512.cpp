#if defined(__x86_64__)
#define LRNN_ISA avx512
#define LRNN_VECTOR_BYTES 64
#include "kernels/cpu/selective_scan_units.inc"

namespace lrnn::kernels {
const SelectiveScanUnits kSelectiveScanAvx512 = avx512::kScanUnits;
}
#endif
