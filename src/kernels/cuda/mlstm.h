#pragma once
#include <cstdint>

#include "kernels/mlstm.h"

// The gates of the mLSTM cell on the GPU. Once they are known, C with n as one more column is a
// diagonal recurrence with keys exp(i - m) k and decay exp(log_forget), and kernels/cuda/diagonal.h
// has that.
namespace lrnn::kernels::cuda {

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

// From the gradients of what mlstm_gates returns to those of i, f and (where it is not null) first.
// dfinal_m may be null for zeros.
void mlstm_gate_gradients(const MlstmGates& p, const void* m, const void* dm,
                          const void* dlog_forget, const void* dlog_input, const void* dfinal_m,
                          void* di, void* df, void* dfirst, void* stream);

}  // namespace lrnn::kernels::cuda
