#if defined(__x86_64__)
#define LRNN_ISA avx2
#define LRNN_VECTOR_BYTES 32
#include "kernels/cpu/slstm_units.inc"

namespace lrnn::kernels {
const SlstmUnits kSlstmAvx2 = avx2::kSlstm;
}
#endif
