#pragma once
#include <cstdint>

#include "kernels/types.h"

// What works on rows, a row or a few at a time, on the GPU: device pointers in, launches on a
// stream. "wide" is double for kFloat64 and float otherwise.
namespace lrnn::kernels::cuda {

// ------------------------------------------------------------------------------- norms and SwiGLU

// Rows of D values, `stride` apart; or groups of `per` such rows, `outer` apart.
struct RowArray {
  void* data = nullptr;
  int64_t stride = 0, per = 0, outer = 0;
};

struct RowSize {
  Type type = Type::kFloat32;
  int64_t rows = 0, D = 0;
};

// y = x / sqrt(share sum(x^2) + eps) * weight, row by row; weight is wide [D] or null for ones.
struct NormInputs : RowSize {
  RowArray x;  // may come in groups
  const void* weight = nullptr;
  double share = 1, eps = 0;
};

inline constexpr int64_t kNormRange = 256;  // rows summed into one partial of dweight

void norm_forward(const NormInputs& p, const RowArray& y, void* stream);
// inverse: wide [rows], workspace. dweight: wide [rows / kNormRange rounded up, D], or null.
void norm_backward(const NormInputs& p, const RowArray& dy, const RowArray& dx, void* inverse,
                   void* dweight, void* stream);

void swiglu_forward(const RowSize& size, const RowArray& gate, const RowArray& up,
                    const RowArray& h, void* stream);
void swiglu_backward(const RowSize& size, const RowArray& dh, const RowArray& gate,
                     const RowArray& up, const RowArray& dgate, const RowArray& dup, void* stream);

// ---------------------------------------------------- a residual stream and the norm that follows
// One pass forward and one backward, whatever the types of stream, branch and product.

// s = x + y,  h = s / sqrt(mean(s^2) + eps) * weight, row by row.
struct AddNorm {
  int64_t rows = 0, D = 0;
  Type x_type = Type::kFloat32;  // of x and s
  Type y_type = Type::kFloat32, h_type = Type::kFloat32;
  RowArray x, y;  // y.data null: s is x, and not written
  RowArray s, h;
  const void* weight = nullptr;  // wide [D]
  double eps = 0;
};
inline constexpr int64_t kAddNormMost = 4096;  // values of a row: what a block holds

void add_norm_forward(const AddNorm& p, void* stream);

// dx = ds + what dh gives; dy is the same. s, weight, sizes and types as above.
struct AddNormGradient {
  RowArray ds;              // data null: none
  RowArray dh, dx, dy;      // dy.data null: not wanted
  void* partial = nullptr;  // wide [add_norm_parts(..),D]: they add up to dweight
};
int64_t add_norm_parts(int64_t rows, int64_t D);
void add_norm_backward(const AddNorm& p, const AddNormGradient& g, void* stream);

// ----------------------------------------------------------------------- the sigmoid of the gates
// ops/wide_sigmoid says what it is for.

// y = scale sigmoid(x), and dx from dy. x and dx are of `type`, to which the sigmoid is rounded; y
// and dy are wide: double for kFloat64 and float otherwise.
struct Sigmoid {
  Type type = Type::kFloat32;
  int64_t n = 0;
  double scale = 1;
  const void* x = nullptr;
};
void sigmoid_forward(const Sigmoid& p, void* y, void* stream);
void sigmoid_backward(const Sigmoid& p, const void* dy, void* dx, void* stream);

// ---------------------------------------------------------------------- rows of a table by number
// And the sum of their gradients; ops/take/take.h says what they compute. A number beyond the
// table, which the CPU refuses, gives NaN here: to see it, the host would have to wait.

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

// ------------------------------------------------------------- products with a matrix of few rows
// Such as the one that makes step sizes: ops/linears/few_linear.h.

inline constexpr int64_t kMostFewRows = 8, kMostFewColumns = 256;

struct FewLinear {
  Type type = Type::kFloat32;      // float32 or bfloat16, of everything
  int64_t rows = 0, D = 0, n = 0;  // n <= kMostFewRows, D <= kMostFewColumns in packs of eight
  const void* x = nullptr;         // [rows,D], rows `stride` elements apart
  int64_t stride = 0;
  const void* weight = nullptr;  // [n,D]
};

// y [rows,n] = x W^T
void few_product(const FewLinear& p, void* y, void* stream);

// dx [rows,D] = dy W, or with `add` more by that; and sums of dy^T x over runs of rows [few_parts,
// n, D] in float32, to be added up.
int64_t few_parts(const FewLinear& p);
void few_gradients(const FewLinear& p, const void* dy, void* dx, bool add, float* partial,
                   void* stream);

// ------------------------------------------------- a small matrix for every block of the channels
// ops/linears/linears.h says what it is for.

inline constexpr int64_t kMostBlockSide = 8;

// `weight` [blocks,out,in] has the type of the rows; everything is contiguous.
struct BlockLinear {
  Type type = Type::kFloat32;
  int64_t rows = 0, blocks = 0, in = 0, out = 0;
};

// y [rows,blocks,out] = W x, or with `transposed` y [rows,blocks,in] = W^T x.
void block_product(const BlockLinear& p, const void* weight, const void* x, bool transposed,
                   void* y, void* stream);

// Wide sums of dy x^T over runs of rows: [block_parts, blocks, out, in], to be added up.
int64_t block_parts(const BlockLinear& p);
void block_gradient(const BlockLinear& p, const void* dy, const void* x, void* partial,
                    void* stream);

// ---------------------------------------------------------------- partial sums of blocks added up

// to[c] = the sum of `parts` rows of n values, in one order whatever the GPU: the second half of a
// sum that blocks began. "wide" is double for kFloat64 and float otherwise.
struct Parts {
  const void* from = nullptr;  // wide [parts,n]
  int64_t parts = 0, n = 0;
  Type type = Type::kFloat32;  // of the sums
  bool wide = false;           // the parts are double
  void* to = nullptr;
  int64_t across = 1;  // > 1: a row is a matrix [across, n / across], and `to` has it transposed
};
void add_parts(const Parts& p, void* stream);

}  // namespace lrnn::kernels::cuda
