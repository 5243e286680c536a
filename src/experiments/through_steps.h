#pragma once
#include <complex>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/run.h"

// How a run came to what it is: what its heads do to their states, and how sure its answers are, at
// every checkpoint that was kept. Length generalisation that is won and lost shows here first.
namespace lrnn::experiments {

struct HeadLook {
  int64_t layer = 0, head = 0;                       // counted from 1
  std::map<int64_t, std::complex<double>> by_token;  // as in HeadSpectrum
  // Of products of I - beta k k^T, else NaN. How far the keys of reflections (beta > 1) lie on one
  // line: the largest eigenvalue of the mean of k k^T, 1 when all are parallel.
  double alike = 0;
  // And the size of the determinant of a token's matrix, the mean over tokens by its logarithm: 1
  // keeps what was counted, 0.99 is a tenth after 230 tokens.
  double kept = 0;
};

struct LengthLook {
  int64_t length = 0, words = 0, wrong = 0;
  // The logit of the right answer less the largest other one, the least of a word: the median, and
  // what one word in twenty is below.
  double margin = 0, weakest = 0;
  double error() const { return words ? double(wrong) / double(words) : 0; }
};

struct StepLook {
  int64_t step = 0;
  std::vector<HeadLook> heads;
  std::vector<LengthLook> lengths;
};

struct ThroughSteps {
  std::vector<StepLook> looks;         // by step
  size_t decisive = 0;                 // the head without which most words are lost
  std::vector<std::string> damaged{};  // checkpoints that were passed over, as sentences
};

struct StepOptions {
  int64_t words = 256;  // for each length
  std::vector<int64_t> lengths =
      {};             // none: the longest of training, and its doubles to the test's
  int64_t seed = -1;  // below 0: the run's
  std::function<void(int64_t done, int64_t of)> progress = {};
};

// An Error where there are fewer than two checkpoints, or the task is a text.
ThroughSteps through_steps(const std::string& folder, const StepOptions& options);

// One checkpoint.
StepLook look_at(model::Model& model, const tasks::Task& task, uint64_t seed, int64_t words,
                 const std::vector<int64_t>& lengths);

}  // namespace lrnn::experiments
