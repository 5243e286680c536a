#define LRNN_ISA baseline
#define LRNN_VECTOR_BYTES 16
#include "kernels/cpu/mlstm_units.inc"

namespace lrnn::kernels {
const MlstmUnits kMlstmBaseline = baseline::kMlstm;
}
