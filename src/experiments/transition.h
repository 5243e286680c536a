#pragma once
#include <complex>
#include <map>
#include <optional>
#include <string>

#include "ops/torch.h"

// What a layer does to its state at each token, read from what its mixer tells (mixers/mixer.h,
// Context::observe).
namespace lrnn::experiments {

// What the numbers of a layer are.
enum class Kind {
  kHouseholders,
  kDecayAndStep,
  kDiagonal,
  kMomentum,
  kForgetGate,
  kMatrix,
  kJacobian
};
const char* name(Kind kind);   // for programs: "householders", "diagonal", …
const char* about(Kind kind);  // for people: a sentence or two

struct Transition {
  Kind kind = Kind::kDiagonal;
  int64_t householders = 0;  // factors per token; 0: of another kind
  torch::Tensor values;      // [1,T,H,n]: eigenvalues, real or complex
  torch::Tensor outputs;     // [1,T+1,H,D] beside a Jacobian whose mixer tells them; or undefined
};

using Observed = std::map<std::string, torch::Tensor>;  // by name, of one layer and x [1,T,..]

// Nothing when the mixer told nothing that says it; an Error naming the tensor whose shape is not
// the one promised. A diagonal of thousands of channels gives an even choice of them.
std::optional<Transition> read_transition(const Observed& observed);

// The product of I - beta_j k_j k_j^T over j: beta [B,T,N,H], k [B,T,N,H,K]; times a gate log_gate
// [B,T,H], or times one per key channel [B,T,H,K], or undefined for a gate of 1.
struct Householders {
  torch::Tensor beta, k, log_gate;
};
// Its eigenvalues that can differ from the gate: complex [B,T,H,N]. The other K - N equal the gate.
// With a gate per key channel all of them: [B,T,H,K].
torch::Tensor eigenvalues(const Householders& product);
// Of diag(e^log_w) - (a kk) kk^T, all [B,T,H,K]: complex [B,T,H,K].
torch::Tensor eigenvalues(const torch::Tensor& log_w, const torch::Tensor& a,
                          const torch::Tensor& kk);

// Of memory and momentum together (mixers/mixer.h), those that are not 1 - alpha or eta: a pair in
// the plane of the key, complex [B,T,H,2]. theta, eta and alpha [B,T,H], key [B,T,H,K].
torch::Tensor eigenvalues(const torch::Tensor& theta, const torch::Tensor& eta,
                          const torch::Tensor& alpha, const torch::Tensor& key);

// What one letter does to the outputs of a recurrence that is not linear, as far as a line can say
// it: of the map `after` = A `before` + b with the least squared error, the eigenvalue of A that is
// largest in size. Both are [points,D]. Directions in which the outputs hardly vary are left out,
// for their slopes are noise (dynamic mode decomposition, Schmid 2010). Nothing when the points are
// few, or when the map explains less than nine tenths of what varies.
std::optional<std::complex<double>> best_map(const torch::Tensor& before,
                                             const torch::Tensor& after);

}  // namespace lrnn::experiments
