#include "training/evaluate_text.h"

#include <algorithm>
#include <cmath>

#include "ops/torch.h"
#include "training/batch.h"
#include "training/precision.h"

namespace lrnn::training {

double Domain::perplexity() const { return std::exp(loss()); }
double Domain::bits_per_byte() const {
  return bytes > 0 ? nats / (std::log(2) * bytes) : std::nan("");
}

Domain Evaluation::all_domains() const {
  Domain out;
  bool bytes = true;
  for (const auto& domain : domains) {
    out.sequences += domain.sequences;
    out.tokens.right += domain.tokens.right, out.tokens.count += domain.tokens.count;
    out.nats += domain.nats, out.bytes += domain.bytes;
    bytes = bytes && domain.bytes > 0;
  }
  if (!bytes) out.bytes = 0;  // of some nobody knows them
  return out;
}

namespace {

void add(const tasks::Example& example, const TokenLosses& said, Domain& to) {
  ++to.sequences;
  to.bytes += example.bytes;
  for (size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] < 0) continue;
    to.nats += double(said.loss[i]);
    to.tokens.right += said.right[i], ++to.tokens.count;
  }
}

}  // namespace

Evaluation evaluate_text(model::Model& model, const tasks::Task& task,
                         const EvaluateOptions& options, const Look& look) {
  const Range length =
      options.length == Range{} ? task.length(tasks::Split::kEval) : options.length;
  const int64_t samples =
      std::min(options.samples ? options.samples : task.eval_samples, task.most_samples(length));
  const torch::InferenceMode no_gradients;
  const Precision precision(options.precision, model.device().type());
  Evaluation out;
  for (const auto& name : task.domains()) out.domains.push_back({.name = name});
  const int64_t at_once =
      std::max<int64_t>(1, tokens_at_once(model) / std::min(length.hi, kTokensPerPiece));
  for (int64_t first = 0; first < samples; first += at_once) {
    const auto examples = draw(task, options.seed, tasks::Split::kEval, length, first,
                               std::min(at_once, samples - first));
    const auto said =
        token_losses(model, examples.data(), int64_t(examples.size()), options.accuracy);
    for (size_t i = 0; i < examples.size(); ++i) {
      add(examples[i], said[i], out.domains[size_t(examples[i].domain)]);
      if (look) look(examples[i], said[i]);
    }
  }
  // Fewer samples than domains leave some without any.
  std::erase_if(out.domains, [](const Domain& d) { return d.sequences == 0; });
  const Domain all = out.all_domains();
  out.loss = all.loss(), out.tokens = all.tokens, out.sequences.count = all.sequences;
  return out;
}

}  // namespace lrnn::training
