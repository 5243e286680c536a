#pragma once
#include <cstdint>

#include "kernels/diagonal.h"

// RWKV-7 in chunks of 16 tokens on tensor cores, for bfloat16 inputs. Within a chunk that begins
// with the state S, with r the queries times the scale, w = rate kk, and dec(s to t) the product of
// the decays after token s up to t, what is removed at each token, u_t = kk_t^T S_(t-1), solves
//
//   (I + Auw) U = Kq S + Auk V        Kq_t = dec(0 to t-1) kk_t
//   O = Rq S + Ark V - Arw U          Rq_t = dec(0 to t) r_t
//   S <- dec S + Ke^T V - We^T U      Ke_s = dec(s to end) k_s, We_s = dec(s to end) w_s
//
//   Aux_ts = sum over keys of kk_t x_s dec(s to t-1), s < t
//   Arx_ts = sum over keys of  r_t x_s dec(s to t),   s <= t
//
// With T = (I + Auw)^-1, Kp = T Kq, Bp = T Auk, Qt = Rq - Arw Kp and At = Ark - Arw Bp, which all
// chunks have at once, the walk from chunk to chunk is U = Kp S + Bp V and O = Qt S + At V. The
// gradient G of the state walks back by the same matrices, G <- dec G + Qt^T dO - Kp^T (We G), and
// then all chunks' gradients are made at once.
namespace lrnn::kernels::cuda {

// The number keys are padded to, or 0 where this is not for the problem: by sizes alone. A decay
// may be anything in [0,1].
inline int64_t rwkv7_chunk_keys(const DiagonalInputs& p) {
  if (p.type != Type::kBFloat16 || p.negative || !p.kk.data || !p.q.data) return 0;
  if (p.cu_seqlens || p.T <= 16 || p.B * p.H == 0) return 0;
  return p.K <= 16 || p.K > 128 ? 0 : p.K <= 64 ? 64 : 128;
}
bool rwkv7_chunk_fits(const DiagonalInputs& p);

// Bytes: of the state at every chunk, which forward keeps for backward and which its gradient takes
// in backward as well, and of the matrices of all chunks.
int64_t rwkv7_chunk_states(const DiagonalInputs& p);
int64_t rwkv7_chunk_work(const DiagonalInputs& p, bool backward);

// p.states null: nothing is kept.
void rwkv7_chunk_forward(const DiagonalForward& p, void* work, void* stream);
// d_o may be null for zeros; dq is then not made. `gradients`: rwkv7_chunk_states bytes.
void rwkv7_chunk_backward(const DiagonalBackward& p, void* work, void* gradients, void* stream);

}  // namespace lrnn::kernels::cuda
