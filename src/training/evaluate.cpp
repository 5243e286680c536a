#include "training/evaluate.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "ops/torch.h"
#include "training/batch.h"
#include "training/evaluate_text.h"
#include "training/head_loss.h"
#include "training/precision.h"
#include "training/recordings.h"

namespace lrnn::training {

using tasks::Example;

namespace {

constexpr int64_t kPadTo = 32;  // GPU: few different shapes

// How many examples from `first` on fit into one forward; at least one.
int64_t fitting(const std::vector<Example>& examples, int64_t first, int64_t most) {
  int64_t tokens = 0, last = first;
  while (last < int64_t(examples.size()) &&
         (last == first || tokens + int64_t(examples[last].input.size()) <= most))
    tokens += int64_t(examples[last++].input.size());
  return last - first;
}

class Counter {
 public:
  explicit Counter(tasks::Score score) : score_(score) {}

  void add(const Example& example, const char* right) {
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

// Examples and where they go: one forward.
struct Piece {
  const Example* examples;
  int64_t count;
};

// What a forward says: the sum of the losses, and for every target whether it was hit.
struct Answers {
  double loss = 0;
  int64_t targets = 0;
  std::vector<char> right;  // in the order of the targets
};

}  // namespace

// The forwards, on a GPU recorded by shape. One at a time is under way.
struct Evaluator::Forwards {
  Forwards(model::Model& model, bool record)
      : model_(model), gpu_(!model.device().is_cpu()), by_shape_(record) {}

  int64_t tokens() const { return gpu_ ? kTokensPerGpuForward : kTokensPerForward; }

  void begin(const Piece& piece, const EvaluateOptions& options) {
    const int64_t most = longest(piece.examples, piece.count);
    const int64_t length = gpu_ ? (most + kPadTo - 1) / kPadTo * kPadTo : 0;
    Batch batch = make_batch(piece.examples, piece.count, model_.vocabulary(), length);
    batch.context.accuracy = options.accuracy;
    target_ = batch.target, targets_ = batch.targets;
    gpu_ ? replay(batch, options.precision) : work(batch, options.precision, said_);
  }

  Answers end() {
    Answers out{.loss = said_.loss.item<double>(), .targets = targets_, .right = {}};
    const auto hits = said_.right.cpu().contiguous();
    const bool* const hit = hits.const_data_ptr<bool>();
    const int64_t* const target = target_.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < target_.numel(); ++i)
      if (target[i] >= 0) out.right.push_back(hit[i]);
    said_ = {};
    return out;
  }

 private:
  struct Said {
    torch::Tensor loss, right;
  };
  struct Forward {
    Batch batch;  // on the GPU
    Said said;
  };
  // Examples, length, whether there is Context::read_at, precision, kernel.
  using Shape = std::tuple<int64_t, int64_t, bool, std::string, std::string>;

  // Shapes that come back are worth recording.
  void replay(const Batch& batch, const std::string& precision) {
    auto& of = by_shape_.at({batch.input.size(0), batch.input.size(1),
                             batch.context.read_at.defined(), precision, batch.context.accuracy});
    const bool known = of.batch.input.defined();
    if (!known) of.batch = room_for(batch, model_.device());
    send(batch, of.batch);
    const auto forward = [&] { work(of.batch, precision, of.said); };
    if (known && by_shape_.wanted(of)) by_shape_.record(of, forward);
    by_shape_.run(of, forward);
    said_ = of.said;
  }

  // Casts of the weights belong into a recording, hence the precision inside.
  void work(const Batch& batch, const std::string& precision, Said& said) {
    Precision guard(precision, model_.device().type());
    if (has_many_logits(model_, batch)) {
      const auto rows = head_scores(model_, batch);
      said = {rows.loss.sum(), rows.right};
      return;
    }
    model::State state;
    const auto logits = model_.forward(batch.input, state, batch.context);
    said = {loss_sum(logits, batch), right(logits, batch)};
  }

  model::Model& model_;
  bool gpu_;
  Recordings<Shape, Forward> by_shape_;
  Said said_;             // of what is under way
  torch::Tensor target_;  // its own, on the CPU
  int64_t targets_ = 0;
};

Evaluator::Evaluator(model::Model& model, const tasks::Task& task, bool record)
    : model_(model), task_(task), forwards_(std::make_unique<Forwards>(model, record)) {}
Evaluator::~Evaluator() = default;

Evaluation Evaluator::evaluate(const EvaluateOptions& options) {
  if (task_.score() == tasks::Score::kText) return evaluate_text(model_, task_, options);
  check(options.batch >= 1, "an evaluation needs a batch of at least 1, got ", options.batch);
  const int64_t samples = options.samples ? options.samples : task_.eval_samples;
  check(samples >= 1, "an evaluation needs at least 1 sample, got ", samples);
  const Range length =
      options.length == Range{} ? task_.length(tasks::Split::kEval) : options.length;
  check(length.lo <= length.hi, "an evaluation needs lengths from low to high, got ", length.lo,
        " to ", length.hi);

  torch::InferenceMode no_gradients;
  // On the CPU the weights are cast once for all forwards; a recording casts its own.
  std::optional<Precision> precision;
  if (model_.device().is_cpu()) precision.emplace(options.precision, torch::kCPU);
  Counter counter(task_.score());
  double loss = 0;
  int64_t batches = 0;

  struct Drawn {
    std::vector<Example> examples;
    double sum = 0;
    int64_t targets = 0;
  };
  const auto count = [&](Drawn& batch, const Piece& piece, const Answers& answers) {
    batch.sum += answers.loss, batch.targets += answers.targets;
    const char* hit = answers.right.data();
    for (auto e = piece.examples; e != piece.examples + piece.count; ++e) {
      counter.add(*e, hit);
      hit += std::count_if(e->target.begin(), e->target.end(), [](auto t) { return t >= 0; });
    }
    if (piece.examples + piece.count == batch.examples.data() + batch.examples.size())
      loss += batch.sum / double(batch.targets), ++batches;
  };
  // The last answers are read when the next examples are ready: a GPU works meanwhile.
  std::shared_ptr<Drawn> under_way;
  Piece piece{};
  const auto read = [&] {
    if (under_way) count(*under_way, piece, forwards_->end());
    under_way.reset();
  };
  for (int64_t done = 0; done < samples; done += options.batch) {
    const auto batch = std::make_shared<Drawn>();
    batch->examples = draw(task_, options.seed, tasks::Split::kEval, length, options.first + done,
                           std::min(options.batch, samples - done));
    for (int64_t i = 0, n; i < int64_t(batch->examples.size()); i += n) {
      n = fitting(batch->examples, i, forwards_->tokens());
      const Piece next{&batch->examples[size_t(i)], n};
      read();
      forwards_->begin(next, options);
      under_way = batch, piece = next;
    }
  }
  read();
  return counter.result(loss / double(batches), task_.chance());
}

std::optional<EvaluateOptions> validation_of(const tasks::Task& task, EvaluateOptions test,
                                             int64_t samples) {
  if (task.score() == tasks::Score::kText) return {};
  const int64_t tested = test.samples ? test.samples : task.eval_samples;
  const int64_t left = task.most_samples(task.length(tasks::Split::kEval)) - test.first - tested;
  test.first += tested;
  test.samples = std::min({samples, tested, left});
  if (test.samples <= 0) return {};
  return test;
}

Evaluation evaluate(model::Model& model, const tasks::Task& task, const EvaluateOptions& options) {
  return Evaluator(model, task).evaluate(options);
}

}  // namespace lrnn::training
