#if defined(__x86_64__)
#define LRNN_ISA avx2
#define LRNN_VECTOR_BYTES 32
#include "kernels/cpu/mlstm_units.inc"

namespace lrnn::kernels {
const MlstmUnits kMlstmAvx2 = avx2::kMlstm;
}
#endif
