#pragma once
#include <cstdint>

#include "kernels/types.h"

// Losses on the GPU.
namespace lrnn::kernels::cuda {

// ----------------------------------------------------------------------------- of a small model
// Loss, accuracy and the gradient of the logits in one pass.

// For every row with a target (>= 0):  loss = log sum exp x - (1 - s) x[target] - s mean x,
// right = (argmax x is the target, the first of several),
// dx = (softmax x - (1 - s) onehot target - s / V) share; dx = 0 for the others. s is `smoothing`.
// The loss times share and the right ones are added to report[0] and report[1].
struct CrossEntropy {
  Type type = Type::kFloat32;  // of x and dx: float32 or bfloat16
  int64_t rows = 0, V = 0, stride = 0;
  const void* x = nullptr;          // rows of V, `stride` apart
  const int64_t* target = nullptr;  // [rows]
  float smoothing = 0;
  const double* share = nullptr;  // one number
  void* dx = nullptr;             // [rows,V]
  double* partial = nullptr;      // [cross_entropy_blocks(..),2]
  double* report = nullptr;
};
int64_t cross_entropy_blocks(int64_t rows, int64_t V);
void cross_entropy(const CrossEntropy& p, void* stream);

// -------------------------------------------------------------------------- of a language model
// The softmax part of it, for rows of tens of thousands of logits.

// For every row with a target (>= 0):  loss = log sum exp x - x[target],  right = 1 where x is
// largest at the target, the first of several; 0 for the others. With `gradient` x becomes
// (softmax x - onehot target) share, or 0 without a target, and 0 in the columns behind V.
struct RowLosses {
  Type type = Type::kFloat32;
  int64_t rows = 0, V = 0, stride = 0;
  void* x = nullptr;                // [rows,stride], of which V columns count
  const int64_t* target = nullptr;  // [rows]
  double share = 1;
  bool gradient = false;
  void *loss = nullptr, *right = nullptr;  // [rows], float32 or, of float64, float64
};
void row_losses(const RowLosses& p, void* stream);

// loss_sum = share sum of loss, right_sum = sum of right: in double and in one order.
struct RowLossSums {
  Type type = Type::kFloat32;  // of all of them: float32 or float64
  int64_t rows = 0;
  const void *loss = nullptr, *right = nullptr;
  double share = 1;
  void *loss_sum = nullptr, *right_sum = nullptr;
};
void add_row_losses(const RowLossSums& p, void* stream);

}  // namespace lrnn::kernels::cuda
