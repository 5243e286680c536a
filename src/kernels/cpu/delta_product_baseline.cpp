#define LRNN_ISA baseline
#define LRNN_VECTOR_BYTES 16
#include "kernels/cpu/delta_product_units.inc"

namespace lrnn::kernels {
const DeltaProductUnits kDeltaProductBaseline = baseline::kUnits;
}
