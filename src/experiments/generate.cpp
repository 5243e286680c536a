#include "experiments/generate.h"

#include <algorithm>

#include "base/random.h"
#include "model/decoder.h"
#include "ops/torch.h"
#include "training/precision.h"
#include "training/token_losses.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

constexpr uint64_t kDrawStream = 0x67656E65;  // any fixed number

// Reads all but the last token of a prompt, in pieces; memory does not depend on its length.
model::State read_prompt(model::Model& model, const std::vector<int64_t>& prompt) {
  const Tensor tokens = torch::tensor(prompt, torch::kInt64).unsqueeze(0).to(model.device());
  model::State state;
  mixers::Context context;
  for (int64_t first = 0; first + 1 < tokens.size(1); first += training::kTokensPerPiece) {
    const int64_t n = std::min(training::kTokensPerPiece, tokens.size(1) - 1 - first);
    // Of the logits, one row is enough: nobody looks at it.
    context.read_at = torch::tensor({n - 1}, torch::kInt64).to(model.device());
    model.forward(tokens.narrow(1, first, n).contiguous(), state, context);
  }
  return state;
}

model::State side_by_side(const model::State& state, int64_t sequences) {
  model::State out = state;
  for (auto& block : out)
    for (auto& x : block)
      if (x.defined()) x = x.repeat_interleave(sequences, 0);
  return out;
}

}  // namespace

void generate(model::Model& model, const std::string& precision, const std::vector<int64_t>& prompt,
              const GenerateOptions& options, const std::function<bool(int64_t, int64_t)>& said) {
  check(!prompt.empty(), "a text begins with at least one token");
  check(options.sequences >= 1, "there must be at least 1 sequence, got ", options.sequences);
  const torch::InferenceMode no_gradients;
  const training::Precision guard(precision, model.device().type());
  const int64_t count = options.sequences;
  model::Decoder decoder(model, count);
  if (prompt.size() > 1) decoder.go_on(side_by_side(read_prompt(model, prompt), count));

  Tensor tokens = torch::full({count}, prompt.back(), torch::kInt64);
  std::vector<bool> ended(static_cast<size_t>(count), false);
  int64_t left = count;
  for (int64_t i = 0; i < options.tokens && left > 0; ++i) {
    const Tensor logits = decoder.step(tokens).to(torch::kFloat32).cpu().contiguous();
    const uint64_t position = uint64_t(prompt.size()) + uint64_t(i);
    for (int64_t s = 0; s < count; ++s) {
      if (ended[size_t(s)]) continue;
      const double u = Random(options.seed, kDrawStream + uint64_t(s), position).uniform();
      const int64_t token =
          model::draw_token(logits.const_data_ptr<float>() + s * model.vocabulary(),
                            model.vocabulary(), options.drawing, u);
      tokens.mutable_data_ptr<int64_t>()[s] = token;
      if (!said(s, token)) ended[size_t(s)] = true, --left;
    }
  }
}

}  // namespace lrnn::experiments
