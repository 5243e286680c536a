#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/delta_product.h"

// The delta product on the GPU, free of torch: device pointers in, launches on a stream. Eight
// methods, of which choose.h chooses:
//
//   exact           the recurrence itself, float32 (or float64), the state in registers. Any size
//                   up to K = 1024. Its gradients are a reverse recurrence and then sums over short
//                   chunks.
//   small           the same for heads of up to 32 x 32, many at a time, one launch in each
//                   direction.
//   small chunks    those heads for bfloat16 inputs, 16 micro-steps at a time on the tensor cores.
//   one chunk       sequences of up to 80 micro-steps, for bfloat16 inputs.
//   fast, accurate  64 micro-steps at a time on the tensor cores, for bfloat16 inputs, operands
//                   rounded or split (chunk.h); and the same two with a gate per key channel
//                   (chunk_channels.h), which of the others exact alone has.
namespace lrnn::kernels::cuda {

// ------------------------------------------------------------------------------------- exact
// Micro-steps between two kept states; 0 where no chunk fits, which takes V above 4000.
int exact_chunk(int64_t V, Type type);
// How many states [H,K,V] (wide) forward keeps and backward reads.
int64_t exact_slots(const DeltaProductInputs& p, int chunk);

// `states` is wide [slots,H,K,V] or null, `error` wide [B,H,T,N,V] or null.
void exact_forward(const DeltaProductForward& p, int chunk, void* stream);
// `y` wide [B,H,T,N,V] and `dstates` wide [slots,H,K,V] are workspace.
void exact_backward(const DeltaProductBackward& p, int chunk, void* y, void* dstates, void* stream);

// Beside it, where nothing is kept for backward: up to eight micro-steps of bfloat16 inputs from a
// state, as decoding has them.
bool few_steps_fit(const DeltaProductInputs& p);
void few_steps_forward(const DeltaProductForward& p, void* stream);

// ------------------------------------------------------------------------------------- one chunk
// Sequences so short that they are one chunk, from a state of zero and without a gate, for bfloat16
// inputs. What they write, D, is then the solution of a triangular system,
//   (I + L) D = diag(beta) V,  L_ij = beta_i <k_i, k_j> for j < i
//   O = P D,                   P_ti = scale <q_t, k_i>
// and no state is needed but the last one. Operands are split in two wherever rounding is seen.

// Sizes, rows on 16 bytes, keys and values of consecutive micro-steps evenly spaced.
bool one_chunk_fits(const DeltaProductInputs& p);

// error, and what rounding to bfloat16 left of it: [B,H,T,N,V], or null.
void one_chunk_forward(const DeltaProductForward& p, uint16_t* error_lo, void* stream);
void one_chunk_backward(const DeltaProductBackward& p, const uint16_t* error_lo, void* stream);

// ------------------------------------------------------------------------------------- small
// K and V; rows must lie on 16 bytes.
bool small_fits(const DeltaProductInputs& p);
constexpr int kSmallKept = 64;  // micro-steps between two kept states
int64_t small_slots(const DeltaProductInputs& p);
// `error` is wide [B,H,T,N,V] or null; `states` wide [slots,H,K,V], those after every kSmallKept
// micro-steps and after the last, or null.
void small_forward(const DeltaProductForward& p, void* stream);
// `workspace`: wide [B,H,T,N,V+K] for bfloat16 inputs with a gate, else not read.
void small_backward(const DeltaProductBackward& p, float* workspace, void* stream);

// In chunks, for bfloat16 inputs; keys and values of consecutive micro-steps evenly spaced. What
// forward keeps, if anything, split in two bfloat16 (hi and lo, tile/mma.cuh).
struct SmallKept {
  uint16_t *states = nullptr, *states_lo = nullptr;  // [slots,H,V,K]
  uint16_t *error = nullptr, *error_lo = nullptr;    // [B,H,T,N,V]
};
int64_t small_chunks_slots(const DeltaProductInputs& p);
void small_chunks_forward(const DeltaProductForward& p, const SmallKept& kept, void* stream);
void small_chunks_backward(const DeltaProductBackward& p, const SmallKept& kept, void* stream);

// -------------------------------------------------------------------------------- shared keys
// The gradients of keys or queries that `group` heads share, from those that each head left.
struct SharedGradient {
  Type type = Type::kFloat32;
  int64_t rows = 0, group = 1, K = 0;
  const void* heads = nullptr;  // [rows,group,K], on 16 bytes
  void* sums = nullptr;         // [rows,K], on 16 bytes
};
void add_heads(const SharedGradient& p, void* stream);

}  // namespace lrnn::kernels::cuda
