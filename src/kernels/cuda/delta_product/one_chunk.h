#pragma once
#include "kernels/delta_product.h"

// The delta product of sequences so short that they are one chunk, from a state of zero and without
// a gate, for bfloat16 inputs. What they write, D, is then the solution of a triangular system,
//   (I + L) D = diag(beta) V,  L_ij = beta_i <k_i, k_j> for j < i,  O = P D,  P_ti = scale <q_t,
//   k_i>
// and no state is needed but the last one. Operands are split in two wherever rounding would be
// seen.
namespace lrnn::kernels::cuda {

// Sizes, rows on 16 bytes, keys and values of consecutive micro-steps evenly spaced.
bool one_chunk_fits(const DeltaProductInputs& p);

// error, and what rounding to bfloat16 left of it: [B,H,T,N,V], or null.
void one_chunk_forward(const DeltaProductForward& p, uint16_t* error_lo, void* stream);
void one_chunk_backward(const DeltaProductBackward& p, const uint16_t* error_lo, void* stream);

}  // namespace lrnn::kernels::cuda
