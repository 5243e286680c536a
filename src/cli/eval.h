#pragma once
#include <string>
#include <vector>

#include "base/config.h"
#include "cli/output.h"
#include "experiments/by_length.h"
#include "experiments/run.h"
#include "figures/style.h"
#include "figures/table.h"

namespace lrnn::cli {

// Which lengths --lengths asks for.
struct Lengths {
  Range range = {};           // 3:10 or 3-10, or 7 for that one; {0,0}: the task's own
  std::vector<int64_t> each;  // 3,10,100: these and no others, rising
  bool given() const { return !each.empty() || !(range == Range{}); }
};

// An Error for anything else.
Lengths parse_lengths(const std::string& text);

// "3 to 10", "7" or "3, 10 and 100"
std::string in_words(const Lengths& lengths);

struct EvalArguments {
  std::vector<std::string> runs;        // several: side by side
  std::string precision, out;           // out: the figure; empty: in the first run's folder
  std::vector<std::string> accuracies;  // several: they are compared
  Lengths length;
  int64_t samples = 0, seed = -1;
  bool json = false;
  // Of language models:
  std::vector<std::string> data;   // folders whose held-out texts are read
  std::vector<std::string> tasks;  // files of questions
  std::string format = "auto", bos = "never", logits = "float32";
  int64_t smooth = 501, max_length = 0;
  // Of states that are matrices:
  bool rank = false;
  int64_t every = 1;  // tokens from one look to the next
};

// The sequences that are read: of several runs all read the same.
struct Sequences {
  Lengths lengths;
  Range beside = {};  // the lengths of training, for the picture; {0,0}: not wanted
  int64_t samples = 0;
  uint64_t seed = 0;
};
// What is not among the arguments is the run's own.
Sequences sequences_of(const experiments::Run& run, const EvalArguments& arguments);

// What was measured: the whole, and the accuracy by length (or, for tasks with an answer at every
// position, of all prefixes up to a position).
struct Measured {
  training::Evaluation whole;
  std::vector<experiments::LengthBin> bins;
  bool prefix = false;     // a sequence is right when all of its answers are
  bool positions = false;  // the bins are positions in it, not lengths

  // Of accuracies that are drawn: sequences right up to a position have no chance level.
  double chance() const { return prefix ? 0 : whole.chance; }
};

// What `precision`, `kernel` and `batch` are is the caller's to say.
Measured measure(experiments::Run& run, const Sequences& sequences, training::EvaluateOptions how);

std::string label(const experiments::LengthBin& bin);  // "64" or "40–63"

// One curve over the lengths.
struct EvalCurve {
  std::string name;
  const Measured* measured;
  figures::Style style;
  const tasks::Task* task;
};
std::string chart(const std::vector<EvalCurve>& curves);

// Evaluates with the recurrence in float32, then with every one of the kernels on bfloat16 inputs,
// on the same sequences; prints and writes the table and the figure.
int compare_kernels(experiments::Run& run, const EvalArguments& arguments);

// What was measured by length, for people (at most so many rows) and for programs.
constexpr size_t kRowsForPeople = 24;

figures::Table lengths_table(const Measured& measured);  // an even choice of the rows
figures::Table lengths_csv(const Measured& measured);    // all of them
Json lengths_json(const Measured& measured);

// One row per length (at most `rows`, an even choice) and one column per curve: scaled accuracy, or
// of prefixes the share that is right. A curve without such a length has "–" there.
figures::Table side_by_side(const std::vector<EvalCurve>& curves, size_t rows, int digits);

// Short names that tell the folders apart: their last parts, with as much before as it takes.
std::vector<std::string> short_names(const std::vector<std::string>& folders);

// Whether that run is a language model; false where there is no run.
bool is_language_model(const std::string& run);
// Loss by domain and by position, eval/position.csv and figures/position.svg of every run.
int evaluate_texts(const EvalArguments& arguments, const std::string& device);
// The task of a language model's run, reading other folders.
tasks::TaskPtr with_data(const experiments::Run& run, const std::vector<std::string>& data);
// The effective rank of the states along a sequence, eval/rank.csv and figures/rank.svg.
int evaluate_ranks(const EvalArguments& arguments, const std::string& device);
// Questions by the rules of lm-evaluation-harness.
int evaluate_tasks(const EvalArguments& arguments, const std::string& device);

// Measures all, then writes eval/length.csv and figures/length.svg of every run, and of several the
// common figure. An Error when the runs do not answer the same questions; nothing is written then.
int evaluate_runs(const EvalArguments& arguments, const std::string& device);

}  // namespace lrnn::cli
