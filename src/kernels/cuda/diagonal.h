#pragma once
#include <cstdint>

#include "kernels/diagonal.h"

// The recurrence of kernels/diagonal.h on the GPU, free of torch: device pointers in, launches on a
// stream. The structs are the CPU's; what differs is said here.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostDiagonalKeys = 512;

// `states` is wide [diagonal_kept, H, K, V]: the states before every chunk of 8 tokens.
int64_t diagonal_kept(const DiagonalInputs& p);
// Columns of a state are divided among so many blocks.
int64_t diagonal_groups(const DiagonalInputs& p);

void diagonal_forward(const DiagonalForward& p, void* stream);
// `sums`: wide [groups, 3, B, T, H, K], or 5 with the rank-one term; room to work in.
void diagonal_backward(const DiagonalBackward& p, void* sums, void* stream);

}  // namespace lrnn::kernels::cuda
