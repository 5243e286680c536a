#define LRNN_ISA baseline
#define LRNN_VECTOR_BYTES 16
#include "kernels/cpu/slstm_units.inc"

namespace lrnn::kernels {
const SlstmUnits kSlstmBaseline = baseline::kSlstm;
}
