#pragma once
#include <cstdint>

#include "kernels/types.h"

// Loss, accuracy and the gradient of the logits in one pass on the GPU.
namespace lrnn::kernels::cuda {

// For every row with a target (>= 0):  loss = log sum exp x - x[target],  right = (argmax x is the
// target, the first of several), dx = (softmax x - onehot target) share; dx = 0 for the others.
// The loss times share and the right ones are added to report[0] and report[1].
struct CrossEntropy {
  Type type = Type::kFloat32;  // of x and dx: float32 or bfloat16
  int64_t rows = 0, V = 0, stride = 0;
  const void* x = nullptr;          // rows of V, `stride` apart
  const int64_t* target = nullptr;  // [rows]
  const double* share = nullptr;    // one number
  void* dx = nullptr;               // [rows,V]
  double* partial = nullptr;        // [cross_entropy_blocks(..),2]
  double* report = nullptr;
};
int64_t cross_entropy_blocks(int64_t rows, int64_t V);
void cross_entropy(const CrossEntropy& p, void* stream);

}  // namespace lrnn::kernels::cuda
