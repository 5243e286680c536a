#include "kernels/row_kernels.h"

// Which of the builds of the row kernels this machine runs.
namespace lrnn::kernels::rows {

#define LRNN_TABLES(isa)              \
  namespace isa {                     \
  extern const Table<float> kFloat;   \
  extern const Table<double> kDouble; \
  extern const Table<Bf16> kBf16;     \
  extern const FlatTable kFlat;       \
  }
LRNN_TABLES(baseline)
LRNN_TABLES(avx2)
LRNN_TABLES(avx512)
#undef LRNN_TABLES

namespace {
template <class T> const T& choose(Isa isa, const T& baseline, const T& avx2, const T& avx512) {
  return isa == Isa::kAvx512 ? avx512 : isa == Isa::kAvx2 ? avx2 : baseline;
}
}  // namespace

template <> const Table<float>& table(Isa isa) {
  return choose(isa, baseline::kFloat, avx2::kFloat, avx512::kFloat);
}
template <> const Table<double>& table(Isa isa) {
  return choose(isa, baseline::kDouble, avx2::kDouble, avx512::kDouble);
}
template <> const Table<Bf16>& table(Isa isa) {
  return choose(isa, baseline::kBf16, avx2::kBf16, avx512::kBf16);
}
const FlatTable& flat_table(Isa isa) {
  return choose(isa, baseline::kFlat, avx2::kFlat, avx512::kFlat);
}

}  // namespace lrnn::kernels::rows
