#pragma once
#include <map>
#include <vector>

#include "training/evaluate.h"

// Accuracy by length: what tells a model that learned the rule from one that learned its examples.
namespace lrnn::experiments {

// The sequences of lengths lo .. hi together, with a 95 % interval of their accuracy.
struct LengthBin {
  int64_t lo = 0, hi = 0;
  training::Tally tally;
  double low = 0, high = 0;
};

// One bin per length when there are at most twelve; otherwise the bins of the published curves
// (-19, 20-39, 40-63, 64-95, …, 224-255), going on with four to an octave. Bins nothing fell into
// are left out.
std::vector<LengthBin> bins(const std::map<int64_t, training::Tally>& by_length);
// One bin per length, however many there are.
std::vector<LengthBin> each_length(const std::map<int64_t, training::Tally>& by_length);

// For tasks with an answer at every position, one bin per position: the sequences that are right up
// to and including it.
std::vector<LengthBin> prefix_bins(const training::Evaluation& evaluation);

// Percentile bootstrap of right/count. When all are right or all are wrong every resample is the
// same, so the exact (Clopper-Pearson) bound stands in.
std::pair<double, double> interval(const training::Tally& tally);

// (accuracy - chance) / (1 - chance)
double scaled(double accuracy, double chance);

}  // namespace lrnn::experiments
