#pragma once
#include <functional>
#include <vector>

#include "experiments/run.h"
#include "model/draw_token.h"

namespace lrnn::experiments {

struct GenerateOptions {
  model::Drawing drawing = {};
  uint64_t seed = 1;
  int64_t sequences = 1, tokens = 256;
  bool record = true;  // false: every kernel on a GPU is launched by itself, the same bits
};

// Lets a model continue a prompt, the same for every sequence. `said` gets every token; when it
// says false the sequence has ended. What is drawn is a pure function of (seed, sequence, position)
// and the logits, so how fast others go changes nothing. The state is all that is kept: memory is
// the same for any number of tokens. On a GPU tokens are drawn there, up to 32 before anybody is
// told; those behind the end of a sequence are dropped.
void generate(model::Model& model, const std::string& precision, const std::vector<int64_t>& prompt,
              const GenerateOptions& options,
              const std::function<bool(int64_t sequence, int64_t token)>& said);

}  // namespace lrnn::experiments
