#include "experiments/generate.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/random.h"
#include "model/continuation.h"
#include "model/weight_copies.h"
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

// Tokens [steps,B] that are on their way to the host.
class Coming {
 public:
  explicit Coming(const Tensor& ids) {
    if (ids.device().is_cpu()) {
      ids_ = ids;
      return;
    }
    ids_ = torch::empty(ids.sizes(), torch::TensorOptions(torch::kInt64).pinned_memory(true));
    ids_.copy_(ids, /*non_blocking=*/true);
    ready_.emplace(ids.device().type());
    ready_->record(c10::impl::VirtualGuardImpl(ids.device().type()).getStream(ids.device()));
  }
  const Tensor& wait() {
    if (ready_) ready_->synchronize();
    return ids_;
  }

 private:
  Tensor ids_;
  std::optional<c10::Event> ready_;
};

// The numbers that decide the draws of so many steps from a position on, float64 [steps,B].
Tensor numbers(const GenerateOptions& options, uint64_t position, int64_t steps, bool for_gpu) {
  Tensor u = torch::empty({steps, options.sequences},
                          torch::TensorOptions(torch::kFloat64).pinned_memory(for_gpu));
  auto* at = u.mutable_data_ptr<double>();
  for (int64_t i = 0; i < steps; ++i)
    for (int64_t s = 0; s < options.sequences; ++s)
      *at++ = Random(options.seed, kDrawStream + uint64_t(s), position + uint64_t(i)).uniform();
  return u;
}

}  // namespace

void generate(model::Model& model, const std::string& precision, const std::vector<int64_t>& prompt,
              const GenerateOptions& options, const std::function<bool(int64_t, int64_t)>& said) {
  check(!prompt.empty(), "a text begins with at least one token");
  check(options.sequences >= 1, "there must be at least 1 sequence, got ", options.sequences);
  const torch::InferenceMode no_gradients;
  const training::Precision guard(precision, model.device().type());
  const int64_t count = options.sequences;
  const bool gpu = !model.device().is_cpu();
  // Weights are cast, and packed, once; on a CPU autocast keeps its casts.
  std::optional<model::WeightCopies> copies;
  if (gpu)
    copies.emplace(
        model, precision == "bfloat16" ? torch::kBFloat16 : model.parameters().at(0).scalar_type());
  model::State state;
  if (prompt.size() > 1) state = side_by_side(read_prompt(model, prompt), count);
  model::Continuation continuation(model, options.drawing, std::move(state),
                                   torch::full({count}, prompt.back(), torch::kInt64),
                                   options.record);

  // A GPU draws the next tokens while the host reads the last ones. What it has drawn for a
  // sequence that had ended is dropped.
  const size_t ahead = gpu ? 2 : 1;
  std::deque<Coming> coming;
  std::vector<bool> ended(static_cast<size_t>(count), false);
  for (int64_t drawn = 0, read = 0, left = count; read < options.tokens && left > 0;) {
    while (coming.size() < ahead && drawn < options.tokens) {
      const int64_t steps = continuation.steps(options.tokens - drawn);
      coming.emplace_back(continuation.next(
          numbers(options, uint64_t(prompt.size()) + uint64_t(drawn), steps, gpu)));
      drawn += steps;
    }
    const Tensor ids = coming.front().wait();
    coming.pop_front();
    for (int64_t i = 0; i < ids.size(0) && read < options.tokens && left > 0; ++i, ++read)
      for (int64_t s = 0; s < count; ++s)
        if (!ended[size_t(s)] && !said(s, ids.const_data_ptr<int64_t>()[i * count + s]))
          ended[size_t(s)] = true, --left;
  }
}

}  // namespace lrnn::experiments
