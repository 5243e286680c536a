#pragma once
#include <cstdint>

#include "kernels/cuda/diagonal/diagonal.h"
#include "kernels/titans.h"

// The recurrence of kernels/titans.h on the GPU, free of torch: device pointers in, launches on a
// stream. The structs are the CPU's; what differs is said here.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostTitansKeys = 512;

// `states` is wide [diagonal_kept, H, 2, K, V]: memory and momentum before every chunk of 8 tokens.
// Columns of the states are divided among so many blocks.
int64_t titans_groups(const TitansInputs& p);
// Of a token and head: dq and dk, and one number for each gate.
inline int64_t titans_sums(const TitansInputs& p) { return 2 * p.K + 3; }

void titans_forward(const TitansForward& p, void* stream);
// `sums`: wide [titans_groups, B, T, H, titans_sums]; workspace.
void titans_backward(const TitansBackward& p, void* sums, void* stream);

}  // namespace lrnn::kernels::cuda
