#pragma once
#include <complex>
#include <map>
#include <vector>

#include "experiments/run.h"
#include "experiments/transition.h"

// What a model does to its states: the eigenvalues of what each token applies to them. Their sign
// and angle decide what can be counted.
namespace lrnn::experiments {

// Everything one head does while the model reads.
struct HeadSpectrum {
  int64_t layer = 0, head = 0;                       // counted from 1
  Kind kind = Kind::kDiagonal;                       // what the values are
  int64_t householders = 0;                          // 0: of another kind
  std::vector<std::complex<double>> values;          // those that are not 1
  std::vector<int64_t> tokens;                       // at which token each of them was
  int64_t unit = 0;                                  // and how many are 1
  std::map<int64_t, std::complex<double>> by_token;  // the middle one for each token read; of
                                                     // several per token the farthest from 1
  std::map<int64_t, std::complex<double>> fit;       // of a Jacobian: best_map of each token
};

// Reads `samples` evaluation examples of the task. Layers whose mixer tells nothing of its state,
// such as attention, which multiplies none, are left out; an Error when all are. Large Jacobians
// are taken at an even choice of the positions.
std::vector<HeadSpectrum> spectrum(model::Model& model, const tasks::Task& task, uint64_t seed,
                                   int64_t samples);

// What to say of a model with no layer to show: `mixer` keeps every token as it is, or its mixer
// does not tell what it does.
Error nothing_told(const std::string& mixer, bool keeps_tokens);

}  // namespace lrnn::experiments
