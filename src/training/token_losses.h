#pragma once
#include <string>
#include <vector>

#include "model/model.h"
#include "tasks/task.h"

namespace lrnn::training {

// What a model makes of one sequence, position by position; 0 and false where there is no target.
struct TokenLosses {
  std::vector<float> loss;  // nats
  std::vector<char> right;  // the target is the argmax
};

// Longer sequences are read in pieces of this many tokens with the state carried, so that memory is
// the same for every length; of large vocabularies in smaller ones.
constexpr int64_t kTokensPerPiece = 4096;

// Reads sequences of any lengths, many in one forward. The caller sees to InferenceMode and
// Precision. With `narrow` the softmax is that of bfloat16 logits, in bfloat16.
std::vector<TokenLosses> token_losses(model::Model& model, const tasks::Example* examples,
                                      int64_t count, const std::string& accuracy = {},
                                      bool narrow = false);

// How many tokens it is best given at once.
int64_t tokens_at_once(int64_t vocabulary, bool gpu);
int64_t tokens_at_once(const model::Model& model);

}  // namespace lrnn::training
