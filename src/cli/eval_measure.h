#pragma once
#include "cli/eval_lengths.h"
#include "experiments/by_length.h"
#include "experiments/run.h"
#include "figures/style.h"

namespace lrnn::cli {

struct EvalArguments {
  std::vector<std::string> runs;        // several: side by side
  std::string precision, out;           // out: the figure; empty: in the first run's folder
  std::vector<std::string> accuracies;  // several: they are compared
  Lengths length;
  int64_t samples = 0, seed = -1;
  bool json = false;
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

}  // namespace lrnn::cli
