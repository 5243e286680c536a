#pragma once
#include <cstdint>

#include "kernels/diagonal.h"

// The recurrence of kernels/diagonal.h on the GPU, free of torch: device pointers in, launches on a
// stream. The structs are the CPU's; what differs is said here.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostDiagonalKeys = 512;

// `states` is wide [diagonal_kept, H, K, V]: the states before every chunk of 8 tokens.
int64_t diagonal_kept(const HeadsInputs& p);
// Columns of a state are divided among so many blocks.
int64_t diagonal_groups(const DiagonalInputs& p);

void diagonal_forward(const DiagonalForward& p, void* stream);
// `sums`: wide [groups, 3, B, T, H, K], or 5 with the rank-one term; workspace.
void diagonal_backward(const DiagonalBackward& p, void* sums, void* stream);

// Chunks of 64 tokens on tensor cores: gated linear attention in bfloat16, with up to 128 keys and
// decays in [0,1], where sequences are long enough. The number keys are padded to, or 0.
inline int64_t diagonal_chunk_keys(const DiagonalInputs& p) {
  const int64_t length = p.S > 0 ? (p.cu_seqlens ? p.T / p.S : p.T) : 0;
  if (p.type != Type::kBFloat16 || p.negative || p.kk.data || length <= 64) return 0;
  return p.K <= 32 || p.K > 128 ? 0 : p.K <= 64 ? 64 : 128;
}
bool diagonal_chunk_fits(const DiagonalInputs& p);
// `states` are so many floats; forward wants them, kept or not. Backward's workspace has as many. q
// is needed, d_o may be null for zeros.
int64_t diagonal_chunk_states(const DiagonalInputs& p);
void diagonal_chunk_forward(const DiagonalForward& p, void* stream);
void diagonal_chunk_backward(const DiagonalBackward& p, void* dstates, void* stream);

}  // namespace lrnn::kernels::cuda
