#pragma once
#include <cstdint>

// How the kernels see tensors.
namespace lrnn::kernels {

enum class Type : uint8_t { kFloat32, kFloat64, kBFloat16 };

// The upper half of a float.
struct Bf16 {
  uint16_t bits;
};

// Rows of a tensor [batch, token, step, head, :] whose last dimension is contiguous. Strides count
// elements.
struct Rows {
  void* data = nullptr;
  int64_t batch = 0, token = 0, step = 0, head = 0;
};

// Rows that `group` neighbouring heads share: head h reads those of h / group. Not a kind of Rows,
// so that nobody takes h itself for their head.
struct SharedRows {
  void* data = nullptr;
  int64_t batch = 0, token = 0, step = 0, head = 0;
  // 2^31 / group, rounded up. The upper half of (2 h + 1) inverse is h / group, if (2 h + 1) group
  // is less than 2^31: rows are looked for so often that a division would be seen.
  uint32_t inverse = uint32_t(1) << 31;

  SharedRows() = default;
  SharedRows(const Rows& x, int64_t group = 1)
      : data(x.data),
        batch(x.batch),
        token(x.token),
        step(x.step),
        head(x.head),
        inverse(uint32_t(((int64_t(1) << 31) + group - 1) / group)) {}
};

// What recurrences with a state [K,V] per head are given alike.
struct HeadsInputs {
  Type type = Type::kFloat32;  // of the rows and their gradients, where nothing else is said
  int64_t B = 0, T = 0, H = 0, K = 0, V = 0;
  int64_t S = 0;                        // sequences: B, or what cu_seqlens says
  const int64_t* cu_seqlens = nullptr;  // [S+1], B = 1: where the packed sequences begin and end
  double scale = 1;
};

}  // namespace lrnn::kernels
