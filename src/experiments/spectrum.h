#pragma once
#include <complex>
#include <map>
#include <vector>

#include "experiments/run.h"

// What a trained model does to its states: the eigenvalues of the per-token transition matrices
// A = a prod_j (I - beta_j k_j k_j^T). Their sign and angle decide what can be counted.
namespace lrnn::experiments {

// What one layer does to its state at each token: S <- A S + …
struct Transition {
  torch::Tensor beta;      // [B,T,N,H]
  torch::Tensor k;         // [B,T,N,H,K]
  torch::Tensor log_gate;  // [B,T,H], or undefined for a gate of 1
};

// The eigenvalues of `transition` that can differ from its gate a: complex [B,T,H,N]. The other
// K - N equal a.
torch::Tensor eigenvalues(const Transition& transition);

// Everything one head does while the model reads.
struct HeadSpectrum {
  int64_t layer = 0, head = 0, householders = 0;     // layer and head count from 1
  std::vector<std::complex<double>> values;          // those that are not 1
  int64_t unit = 0;                                  // and how many are
  std::map<int64_t, std::complex<double>> by_token;  // the middle one for each token read; of
                                                     // several per token the farthest from 1
};

// Reads `samples` evaluation examples of the task. Error when a mixer has no such transitions.
std::vector<HeadSpectrum> spectrum(model::Model& model, const tasks::Task& task, uint64_t seed,
                                   int64_t samples);

}  // namespace lrnn::experiments
