#pragma once
#include <cstdint>

#include "kernels/types.h"

// Rows of a table by number, and the sum of their gradients, on the GPU; ops/take/take.h says what
// they compute. A number beyond the table, which the CPU refuses, gives NaN here: to see it, the
// host would have to wait.
namespace lrnn::kernels::cuda {

// to[i] = table[index[i]], rows of `bytes`.
void take_rows(const void* table, int64_t rows, int64_t bytes, const int64_t* index, int64_t n,
               void* to, void* stream);

// Gradients of rows that were taken.
struct GivenRows {
  Type type = Type::kFloat32;
  const void* dy = nullptr;        // [n,D]
  int64_t n = 0, rows = 0, D = 0;  // rows: of the table
};
// Tables of few rows: each run of `give_part` of dy's rows leaves sums [rows,D] of its own. The
// runs are as long as leaves every processor of a large GPU enough to do.
inline constexpr int64_t kFewRows = 48;
inline int64_t give_part(int64_t n, int64_t D) {
  const int64_t columns = (D + 127) / 128, part = n * columns / 1024 / 64 * 64;
  return part < 64 ? 64 : part > 2048 ? 2048 : part;
}
void give_to_few(const GivenRows& p, const int64_t* index, void* partial, void* stream);
// Any table. sorted and order: what a stable sort of the index returns. dtable: wide [rows,D].
void give_sorted(const GivenRows& p, const int64_t* sorted, const int64_t* order, void* dtable,
                 void* stream);

}  // namespace lrnn::kernels::cuda
