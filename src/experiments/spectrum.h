#pragma once
#include <complex>
#include <map>
#include <vector>

#include "experiments/run.h"

// What a model does to its states: the eigenvalues of the per-token transition matrices A. Their
// sign and angle decide what can be counted.
//
//   delta_product, delta_net   a prod_j (I - beta_j k_j k_j^T)
//   mamba, gla, diagonal       a diagonal
//   rwkv7                      diag(w) - (a kk) kk^T
//   mlstm, slstm               the forget gate (of slstm, which is not linear, given the last
//   output) full_matrix, ...           the matrix
namespace lrnn::experiments {

// What a layer of Householder products does to its state at each token: S <- A S + …
struct Transition {
  torch::Tensor beta;      // [B,T,N,H]
  torch::Tensor k;         // [B,T,N,H,K]
  torch::Tensor log_gate;  // [B,T,H], or undefined for a gate of 1
};

// The eigenvalues of `transition` that can differ from its gate a: complex [B,T,H,N]. The other
// K - N equal a.
torch::Tensor eigenvalues(const Transition& transition);
// Of diag(e^log_w) - (a kk) kk^T, all [B,T,H,K]: complex [B,T,H,K].
torch::Tensor eigenvalues(const torch::Tensor& log_w, const torch::Tensor& a,
                          const torch::Tensor& kk);

// Everything one head does while the model reads.
struct HeadSpectrum {
  int64_t layer = 0, head = 0;                       // counted from 1
  int64_t householders = 0;                          // 0: of another kind
  std::vector<std::complex<double>> values;          // those that are not 1
  int64_t unit = 0;                                  // and how many are
  std::map<int64_t, std::complex<double>> by_token;  // the middle one for each token read; of
                                                     // several per token the farthest from 1
};

// Reads `samples` evaluation examples of the task. Layers that multiply nothing, such as attention,
// are left out; an error when all are.
std::vector<HeadSpectrum> spectrum(model::Model& model, const tasks::Task& task, uint64_t seed,
                                   int64_t samples);

}  // namespace lrnn::experiments
