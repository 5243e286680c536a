#pragma once
#include <cstdint>

#include "kernels/types.h"

// The next token of each row of logits: ops/draw_token/draw_token.h.
namespace lrnn::kernels::cuda {

struct DrawTokens {
  Type type = Type::kFloat32;    // of the logits: float32 or bfloat16
  int64_t rows = 0, V = 0;       // V < 2^31
  const void* logits = nullptr;  // [rows,V], rows `stride` elements apart
  int64_t stride = 0;
  const double* u = nullptr;  // [rows], in [0, 1)
  double temperature = 1, top_p = 1;
  int64_t top_k = 0;
};

void draw_tokens(const DrawTokens& p, int64_t* ids, void* stream);

}  // namespace lrnn::kernels::cuda
