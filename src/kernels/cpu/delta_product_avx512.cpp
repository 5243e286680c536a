#if defined(__x86_64__)
#define LRNN_ISA avx512
#define LRNN_VECTOR_BYTES 64
#include "kernels/cpu/delta_product_units.inc"

namespace lrnn::kernels {
const DeltaProductUnits kDeltaProductAvx512 = avx512::kUnits;
}
#endif
