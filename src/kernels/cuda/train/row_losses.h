#pragma once
#include <cstdint>

#include "kernels/types.h"

// The softmax part of a language model's loss, for rows of tens of thousands of logits.
namespace lrnn::kernels::cuda {

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
