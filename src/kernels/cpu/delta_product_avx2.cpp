#if defined(__x86_64__)
#define LRNN_ISA avx2
#define LRNN_VECTOR_BYTES 32
#include "kernels/cpu/delta_product_units.inc"

namespace lrnn::kernels {
const DeltaProductUnits kDeltaProductAvx2 = avx2::kUnits;
}
#endif
