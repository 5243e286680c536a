#include "training/evaluate.h"

#include <algorithm>

#include "ops/torch.h"
#include "training/batch.h"
#include "training/precision.h"

namespace lrnn::training {

using tasks::Example;

namespace {

// Activations of one forward stay within a few hundred megabytes (a few gigabytes on a GPU) however
// long the sequences are.
constexpr int64_t kTokensPerForward = 16384, kTokensPerGpuForward = 262144;
constexpr int64_t kPadTo = 32;  // GPU: few different shapes

// How many examples from `first` on fit into one forward; at least one.
int64_t fitting(const std::vector<Example>& examples, int64_t first, int64_t most) {
  int64_t tokens = 0, last = first;
  while (last < int64_t(examples.size()) &&
         (last == first || tokens + int64_t(examples[last].input.size()) <= most))
    tokens += int64_t(examples[last++].input.size());
  return last - first;
}

Batch batch_for(torch::Device device, const Example* examples, int64_t count, int64_t vocabulary) {
  if (device.is_cpu()) return make_batch(examples, count, vocabulary);
  const int64_t length = (longest(examples, count) + kPadTo - 1) / kPadTo * kPadTo;
  Batch out = make_rectangle(examples, count, vocabulary, length);
  out.input = out.input.to(device), out.target = out.target.to(device);
  return out;
}

class Counter {
 public:
  explicit Counter(tasks::Score score) : score_(score) {}

  void add(const Example& example, const bool* right) {
    Tally counted;
    int64_t good = 0, at = 0;  // right in a row from the start; index among the targets
    for (int64_t target : example.target) {
      if (target < 0) continue;
      counted.right += right[at];
      counted.count += 1;
      good += right[at] && good == at;
      ++at;
    }
    const bool all = good == counted.count;
    sequences_.right += all, sequences_.count += 1;
    auto& same = by_length_[example.length];
    same.right += all, same.count += 1;
    if (score_ != tasks::Score::kPrefix) return;
    tokens_.right += counted.right, tokens_.count += counted.count;
    // fails_[l]: sequences whose first mistake is at l; the curve is what is left.
    if (int64_t(fails_.size()) < counted.count) fails_.resize(size_t(counted.count));
    if (!all) ++fails_[size_t(good)];
  }

  Evaluation result(double loss, double chance) const {
    Evaluation out{.loss = loss,
                   .sequences = sequences_,
                   .tokens = tokens_,
                   .prefix = {},
                   .by_length = by_length_,
                   .chance = chance};
    int64_t left = sequences_.count;
    for (int64_t fail : fails_)
      out.prefix.push_back(double(left -= fail) / double(sequences_.count));
    return out;
  }

 private:
  tasks::Score score_;
  Tally sequences_, tokens_;
  std::map<int64_t, Tally> by_length_;
  std::vector<int64_t> fails_;
};

}  // namespace

Evaluation evaluate(model::Model& model, const tasks::Task& task, const EvaluateOptions& options) {
  check(options.batch >= 1, "an evaluation needs a batch of at least 1, got ", options.batch);
  const int64_t samples = options.samples ? options.samples : task.eval_samples;
  check(samples >= 1, "an evaluation needs at least 1 sample, got ", samples);
  const Range length =
      options.length == Range{} ? task.length(tasks::Split::kEval) : options.length;
  check(length.lo <= length.hi, "an evaluation needs lengths from low to high, got ", length.lo,
        " to ", length.hi);

  torch::InferenceMode no_gradients;
  const auto device = model.device();
  const int64_t most = device.is_cpu() ? kTokensPerForward : kTokensPerGpuForward;
  Precision precision(options.precision, device.type());
  Counter counter(task.score());
  double loss = 0;
  int64_t batches = 0;
  for (int64_t first = 0; first < samples; first += options.batch, ++batches) {
    const auto examples = draw(task, options.seed, tasks::Split::kEval, length, first,
                               std::min(options.batch, samples - first));
    double sum = 0;
    int64_t targets = 0;
    for (int64_t i = 0, n; i < int64_t(examples.size()); i += n) {
      n = fitting(examples, i, most);
      auto batch = batch_for(device, &examples[size_t(i)], n, task.vocabulary());
      batch.context.kernel = options.kernel;
      model::State state;
      const auto logits = model.forward(batch.input, state, batch.context);
      sum += loss_sum(logits, batch).item<double>();
      targets += batch.targets;
      // -1 is never an argmax, so rows without a target are false; keep the others.
      const auto hits = right(logits, batch).masked_select(batch.target >= 0).cpu().contiguous();
      const bool* hit = hits.const_data_ptr<bool>();
      for (int64_t j = i; j < i + n; ++j) {
        const auto& target = examples[size_t(j)].target;
        counter.add(examples[size_t(j)], hit);
        hit += std::count_if(target.begin(), target.end(), [](auto t) { return t >= 0; });
      }
    }
    loss += sum / double(targets);
  }
  return counter.result(loss / double(batches), task.chance());
}

}  // namespace lrnn::training
