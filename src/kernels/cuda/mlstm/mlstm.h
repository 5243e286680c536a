#pragma once
#include <cstdint>

#include "kernels/mlstm.h"

// The mLSTM cell on the GPU, free of torch; the structs are the CPU's.
namespace lrnn::kernels::cuda {

// Chunks of 64 tokens on tensor cores, one launch forward and one backward: float32 and bfloat16
// with K and V up to 64. The size K and V are padded to, or 0 where others must do the work.
inline int64_t mlstm_chunk_size(const MlstmInputs& p) {
  const int64_t most = p.K > p.V ? p.K : p.V;
  return p.type == Type::kFloat64 || most > 64 ? 0 : most > 32 ? 64 : 32;
}
bool mlstm_chunk_fits(const MlstmInputs& p);

// `states` are mlstm_chunk_kept floats; null where nothing is kept. final_C and final_n of backward
// are not read.
int64_t mlstm_chunk_kept(const MlstmInputs& p);
void mlstm_chunk_forward(const MlstmForward& p, void* stream);
void mlstm_chunk_backward(const MlstmBackward& p, void* stream);

// Chunks of 64 tokens on warp-group products (hopper.cuh): bfloat16 on Hopper, K and V multiples of
// 16 up to 1024. Rows lie on 16 bytes, each once, and dh is given. `states` are mlstm_hopper_kept
// floats, or null; `work` is memory of as many floats as asked for, which nobody reads later.
bool mlstm_hopper_fits(const MlstmInputs& p);
int64_t mlstm_hopper_kept(const MlstmInputs& p);
int64_t mlstm_hopper_work(const MlstmForward& p);
int64_t mlstm_hopper_backward_work(const MlstmBackward& p);
void mlstm_hopper_forward(const MlstmForward& p, void* work, void* stream);
void mlstm_hopper_backward(const MlstmBackward& p, void* work, void* stream);

// The gates alone, for everybody else. Once they are known, C with n as one more column is a
// diagonal recurrence with keys exp(i - m) k and decay exp(log_forget), and diagonal/diagonal.h
// has that.

struct MlstmGates {
  Type type = Type::kFloat32;  // kFloat64 or anything that is computed in float
  int64_t B = 0, T = 0, H = 0, S = 0;
  const int64_t* cu_seqlens = nullptr;    // [S+1], or null
  const void *i = nullptr, *f = nullptr;  // wide [B,T,H]
  const void* first = nullptr;            // wide [S,H]: m before the first token, or null for -inf
};

// With a = log sigmoid(f) + m before: m = max(a, i) [B,T,H], log_forget = a - m, log_input = i - m.
void mlstm_gates(const MlstmGates& p, void* m, void* log_forget, void* log_input, void* final_m,
                 void* stream);

// From the gradients of what mlstm_gates returns to those of i, f and first.
struct MlstmGateGradients : MlstmGates {
  const void* m = nullptr;  // as mlstm_gates left it
  const void *dm = nullptr, *dlog_forget = nullptr, *dlog_input = nullptr;  // [B,T,H]
  const void* dfinal_m = nullptr;                                           // null: zeros
  void *di = nullptr, *df = nullptr, *dfirst = nullptr;  // dfirst null: not wanted
};
void mlstm_gate_gradients(const MlstmGateGradients& p, void* stream);

}  // namespace lrnn::kernels::cuda
