#pragma once
#include <torch/types.h>

#include <cstdint>

namespace lrnn::ops {

// How the next token is chosen from its logits.
struct Drawing {
  double temperature = 1;  // 0: the largest logit, the lowest id of several
  int64_t top_k = 0;       // among so many with the largest logits; 0: all
  double top_p = 1;        // among the fewest of these that have such a share of the probability
};

// The token for a number u in [0, 1): that many of the probability lies before it when the tokens
// stand in the order of their logits, the largest (and of equals the lowest id) first.
int64_t draw_token(const float* logits, int64_t vocabulary, const Drawing& how, double u);

// The same of every row: logits [B,vocabulary], u float64 [B] beside them -> int64 [B]. Nobody
// waits for a GPU. There probabilities are rounded, to 2^-47 of the largest where there are 32,000
// tokens, so another token than the definition's is drawn only where u is within 2^-32 of the
// border between two.
torch::Tensor draw_tokens(const torch::Tensor& logits, const torch::Tensor& u, const Drawing& how);
torch::Tensor draw_tokens_definition(const torch::Tensor& logits, const torch::Tensor& u,
                                     const Drawing& how);

}  // namespace lrnn::ops
