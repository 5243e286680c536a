#include "cli/judge.h"

#include "experiments/generate.h"
#include "text/generated_text.h"
#include "training/token_losses.h"

namespace lrnn::cli {

std::vector<Likelihood> Judge::of(const std::vector<text::Request>& requests) const {
  std::vector<lrnn::tasks::Example> examples;
  for (const auto& request : requests) {
    lrnn::tasks::Example e;
    e.input.assign(request.ids.begin(), request.ids.end() - 1);
    e.target.assign(e.input.size(), -1);
    for (size_t i = 0; i < request.scored; ++i)
      e.target[e.target.size() - 1 - i] = request.ids[request.ids.size() - 1 - i];
    examples.push_back(std::move(e));
  }
  const auto said =
      training::token_losses(model_, examples.data(), int64_t(examples.size()), {}, narrow_);
  std::vector<Likelihood> out(requests.size());
  for (size_t i = 0; i < requests.size(); ++i)
    for (size_t t = 0; t < examples[i].target.size(); ++t) {
      if (examples[i].target[t] < 0) continue;
      out[i].sum -= double(said[i].loss[t]);
      out[i].greedy = out[i].greedy && said[i].right[t];
    }
  return out;
}

std::string Judge::complete(const text::Ids& prompt, const text::Tokenizer& tokenizer,
                            const experiments::TextRun& texts) const {
  experiments::GenerateOptions how;
  how.drawing.temperature = 0, how.tokens = text::kCompletionTokens;
  text::GeneratedText reader(tokenizer, prompt, {text::kCompletionStop});
  std::string out;
  experiments::generate(model_, precision_, {prompt.begin(), prompt.end()}, how,
                        [&](int64_t, int64_t token) {
                          if (token == texts.bos || token == texts.eos) return false;
                          // A model may have more logits than the tokenizer has ids; they say
                          // nothing.
                          if (token < tokenizer.vocabulary()) out += reader.add(int32_t(token));
                          return !reader.stopped();
                        });
  return out + reader.end();
}

}  // namespace lrnn::cli
