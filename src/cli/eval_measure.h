#pragma once
#include "experiments/by_length.h"
#include "experiments/run.h"

namespace lrnn::cli {

struct EvalArguments {
  std::string run, precision;
  std::vector<std::string> kernels;  // several: they are compared
  Range length = {};                 // of the sequences; {0,0}: the task's own
  int64_t samples = 0, seed = -1;
  bool json = false;
};

// What was measured: the whole, and the accuracy by length (or, for tasks with an answer at every
// position, of all prefixes up to a position).
struct Measured {
  training::Evaluation whole;
  std::vector<experiments::LengthBin> bins;
  bool prefix = false;
  Range length;  // of the sequences behind `whole`

  // Of accuracies that are drawn: sequences right up to a position have no chance level.
  double chance() const { return prefix ? 0 : whole.chance; }
};

// What `precision`, `kernel` and `batch` are is the caller's to say.
Measured measure(experiments::Run& run, const EvalArguments& arguments,
                 training::EvaluateOptions how);

std::string label(const experiments::LengthBin& bin);  // "64" or "40–63"

// One curve over the lengths.
struct Curve {
  std::string name;
  const Measured* measured;
};
std::string chart(const experiments::Run& run, const std::vector<Curve>& curves);

// Evaluates with the recurrence in float32, then with every one of the kernels on bfloat16 inputs,
// on the same sequences; prints and writes the table and the figure.
int compare_kernels(experiments::Run& run, const EvalArguments& arguments);

}  // namespace lrnn::cli
