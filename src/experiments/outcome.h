#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/plan.h"

// What the runs of a published table came to, read back from their folders.
namespace lrnn::experiments {

using Curve = std::vector<std::pair<double, double>>;

// The evaluation that a run would be stopped at by who sees the validation set only.
struct Chosen {
  int64_t step = 0;
  double validation = Summary::kNothing, score = Summary::kNothing;  // score: on the test
};

struct Outcome {
  bool done = false;
  int64_t seed = 0;
  double lr = 0, score = Summary::kNothing, seconds = 0;
  int64_t sequences = 0;  // that the score was measured on
  double accuracy = Summary::kNothing, scaled = Summary::kNothing;  // on the test's lengths
  double loss = Summary::kNothing;
  bool text = false;  // of a language model, whose loss is the score
  int64_t step = 0;
  std::string folder;
  Curve training;                // the score by step, as evaluated on the way
  Curve validation;              // the same on the validation set; none of runs without one
  std::optional<Chosen> chosen;  // the first of the best on it
  Curve lengths;                 // scaled accuracy by length, or prefix accuracy by position
};
// `at`: the prefix that is scored, as in Cell.
Outcome read_outcome(const PlannedRun& run, int64_t at = 0);

// One cell of the table: all seeds with the learning rate whose median is best.
struct CellOutcome {
  Cell cell;
  std::string key;  // of its model: experiments/identity.h
  double lr = 0;
  std::vector<Outcome> runs;      // those of that rate, done or not
  Summary ours;                   // after the last step
  Summary chosen;                 // of the evaluations chosen; nothing unless every run has one
  double seconds = 0;             // of all its runs, other rates included
  int64_t trained_to = 0;         // the longest training sequence
  bool prefix = false;            // the curves are prefix curves
  bool text = false;              // the score is a loss: less is better
  const Outcome* middle() const;  // the run whose score is the median (of two, the lower); or null
  int64_t sequences() const;      // of the test that had fewest; of none, those of the papers
};
std::vector<CellOutcome> outcomes(const Suite& suite, const std::vector<PlannedRun>& runs);

// How far ours is from what is published: median against median, or best against best where that is
// all there is. NaN when one of them is missing.
double difference(const CellOutcome& cell);
// What that may be by chance: both MADs, and sampling_error of the sequences tested.
double spread(const CellOutcome& cell);
// One standard deviation of a scaled parity score at chance on so many sequences: 1 / sqrt(n),
// which is 0.011 on the 8192 of the published tests.
double sampling_error(int64_t sequences);
// "" or one remark, such as "lower by 0.31".
std::string remark(const CellOutcome& cell);

}  // namespace lrnn::experiments
