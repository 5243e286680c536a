#pragma once
#include <map>
#include <memory>
#include <optional>

#include "model/model.h"
#include "tasks/task.h"

namespace lrnn::training {

// Right and counted answers at one length.
struct Tally {
  int64_t right = 0, count = 0;
  double accuracy() const { return count ? double(right) / double(count) : 0; }
};

// Of texts: what was measured on one kind of them.
struct Domain {
  std::string name = {};
  int64_t sequences = 0;
  Tally tokens = {};
  double nats = 0;   // the sum of the losses
  double bytes = 0;  // of the text that the targets stand for; 0: nobody knows
  double loss() const { return tokens.count ? nats / double(tokens.count) : 0; }  // per target
  double perplexity() const;
  double bits_per_byte() const;  // NaN where the bytes are not known
};

// What a model scores on a set of examples. For Score::kText it is the loss per target; `sequences`
// only counts, and the accuracy is that of the tokens. For Score::kAnswer `right` counts sequences
// whose one answer is the argmax over all logits; for Score::kPrefix it counts sequences that are
// right at every position, and tokens/prefix hold the other two numbers of the papers.
struct Evaluation {
  double loss = 0;             // mean of the batch means; kText: per target
  Tally sequences;             // the number reported in tables
  Tally tokens;                // kPrefix: positions, BOS included
  std::vector<double> prefix;  // kPrefix: share of sequences right up to and including position l
  std::map<int64_t, Tally> by_length;  // Example::length -> sequences
  double chance = 0;
  std::vector<Domain> domains = {};  // kText: at least one
  bool of_text() const { return !domains.empty(); }
  Domain all_domains() const;  // their sum, without a name
  double accuracy() const { return (of_text() ? tokens : sequences).accuracy(); }
  double scaled() const { return (accuracy() - chance) / (1 - chance); }
};

// Activations of one forward stay within a few hundred megabytes (a few gigabytes on a GPU) however
// long the sequences are.
constexpr int64_t kTokensPerForward = 16384, kTokensPerGpuForward = 262144;

struct EvaluateOptions {
  uint64_t seed = 0;
  int64_t first = 0;      // the number of the first of them
  int64_t samples = 0;    // 0: the task's own number
  Range length = {0, 0};  // {0,0}: the task's own range
  int64_t batch = 256;
  std::string precision = "float32";
  std::string accuracy = {};  // see mixers::Context
};

// The examples behind those of the test, of the same lengths: no example is in both. Nothing where
// there are none, or of texts, whose windows are all read.
std::optional<EvaluateOptions> validation_of(const tasks::Task& task, EvaluateOptions test,
                                             int64_t samples);

// Evaluates a model again and again. On a GPU the forward of a shape that comes back is recorded
// and replayed, and the host draws the next examples meanwhile: small models are bound by launches
// otherwise. The recordings read the weights where they lie.
class Evaluator {
 public:
  // With `record` false every kernel is launched by itself: the same bits, for tests.
  Evaluator(model::Model& model, const tasks::Task& task, bool record = true);
  ~Evaluator();
  Evaluation evaluate(const EvaluateOptions& options);

 private:
  struct Forwards;
  model::Model& model_;
  const tasks::Task& task_;
  std::unique_ptr<Forwards> forwards_;
};

Evaluation evaluate(model::Model& model, const tasks::Task& task, const EvaluateOptions& options);

}  // namespace lrnn::training
