#define LRNN_ISA baseline
#define LRNN_VECTOR_BYTES 16
#include "kernels/cpu/diagonal_units.inc"

namespace lrnn::kernels {
const DiagonalUnits kDiagonalBaseline = baseline::kDiagonalUnits;
}
