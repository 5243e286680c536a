#if defined(__x86_64__)
#define LRNN_ISA avx512
#define LRNN_VECTOR_BYTES 64
#include "kernels/cpu/slstm_units.inc"

namespace lrnn::kernels {
const SlstmUnits kSlstmAvx512 = avx512::kSlstm;
}
#endif
