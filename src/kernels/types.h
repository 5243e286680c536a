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

}  // namespace lrnn::kernels
