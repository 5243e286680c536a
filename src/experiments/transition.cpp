#include "experiments/transition.h"

#include "base/error.h"

namespace lrnn::experiments {

namespace {

using torch::Tensor;

// A diagonal [1,T,channels,..] as one head. Of thousands of channels an even choice: the stride is
// odd, so that it meets every number of a channel's state.
Tensor one_head(const Tensor& values) {
  constexpr int64_t kMost = 128;
  const Tensor flat = values.flatten(2).unsqueeze(2);
  return flat.slice(-1, 0, flat.size(-1), (flat.size(-1) / kMost) | 1);
}

Tensor eigenvalues_of(const Tensor& matrices) {
  return torch::linalg_eigvals(matrices.to(torch::kFloat64));
}

// The tensors of one layer, with the promises of mixers/mixer.h checked.
class Told {
 public:
  explicit Told(const Observed& observed) : observed_(observed) {}

  bool has(const char* name) const { return observed_.contains(name); }
  // Undefined where the mixer did not tell it.
  Tensor get(const char* name, int64_t dimensions, const char* shape) const {
    const auto at = observed_.find(name);
    if (at == observed_.end()) return {};
    const Tensor& value = at->second;
    const bool fits = value.defined() &&
                      (dimensions < 0 ? value.dim() >= -dimensions : value.dim() == dimensions);
    if (!fits)
      throw Error(cat("the mixer observes '", name, "' as ",
                      value.defined() ? cat(value.sizes()) : "nothing", ", which is not ", shape),
                  "src/mixers/mixer.h says what each name must be");
    return value;
  }
  Tensor square(const char* name, int64_t dimensions, const char* shape) const {
    const Tensor value = get(name, dimensions, shape);
    check(value.size(-1) == value.size(-2), "the mixer observes '", name, "' as ", value.sizes(),
          ", which is not ", shape);
    return value;
  }

 private:
  const Observed& observed_;
};

constexpr const char* kHeads = "[B,T,H,K]";

bool gates_channels(const Observed& observed) {
  const auto at = observed.find("log_gate");
  return at != observed.end() && at->second.defined() && at->second.dim() == 4;
}

}  // namespace

const char* name(Kind kind) {
  switch (kind) {
    case Kind::kHouseholders: return "householders";
    case Kind::kDecayAndStep: return "decay_and_step";
    case Kind::kDiagonal: return "diagonal";
    case Kind::kMomentum: return "momentum";
    case Kind::kForgetGate: return "forget_gate";
    case Kind::kMatrix: return "matrix";
    case Kind::kJacobian: return "jacobian";
  }
  return "";
}

const char* about(Kind kind) {
  switch (kind) {
    case Kind::kHouseholders:
      return "Eigenvalues of the matrix that a token applies to the state, a product of factors "
             "I - beta k k^T. -1 is a reflection, which counts modulo 2; a pair off the real line "
             "is a rotation, which counts further.";
    case Kind::kDecayAndStep:
      return "Eigenvalues of the matrix that a token applies to the state, a diagonal decay minus "
             "a rank-one step. A negative one flips a sign, which counts modulo 2.";
    case Kind::kDiagonal:
      return "The numbers by which a token multiplies the entries of the state: the eigenvalues of "
             "a diagonal matrix. A negative one flips a sign, which counts modulo 2.";
    case Kind::kMomentum:
      return "Eigenvalues of the matrix that a token applies to a memory and its momentum "
             "together, the two in the plane of the key; all others are 1 - alpha or eta. A pair "
             "off the real line swings, a negative one flips a sign, which counts modulo 2.";
    case Kind::kForgetGate:
      return "Forget gates: the one number by which a token multiplies all of a head's memory. "
             "They lie between 0 and 1, so nothing flips.";
    case Kind::kMatrix:
      return "Eigenvalues of the matrix that a token applies to the state. -1 is a reflection, "
             "which counts modulo 2; a pair off the real line is a rotation, which counts further.";
    case Kind::kJacobian:
      return "This recurrence is not linear: its outputs feed back into its gates, so no matrix is "
             "all that a token does. Shown are the eigenvalues of its Jacobian, what a token does "
             "to a small change of the state, at the states that were visited. A flip that snaps "
             "into place is negative there and may be near 0. 'Fit' is the largest eigenvalue of "
             "the linear map that best describes what a letter did to the outputs of a head: near "
             "-1 it flips them, near 1 it keeps them, – where no such map fits.";
  }
  return "";
}

std::optional<Transition> read_transition(const Observed& observed) {
  const Told told(observed);
  if (told.has("beta") && told.has("k")) {
    const Tensor k = told.get("k", 5, "[B,T,N,H,K]"), beta = told.get("beta", 4, "[B,T,N,H]");
    if (gates_channels(observed))
      return Transition{
          Kind::kMatrix, 0, eigenvalues({beta, k, told.get("log_gate", 4, kHeads)}), {}};
    return Transition{Kind::kHouseholders,
                      k.size(2),
                      eigenvalues({beta, k, told.get("log_gate", 3, "[B,T,H]")}),
                      {}};
  }
  if (told.has("kk") && told.has("a") && told.has("log_w"))
    return Transition{Kind::kDecayAndStep,
                      0,
                      eigenvalues(told.get("log_w", 4, kHeads), told.get("a", 4, kHeads),
                                  told.get("kk", 4, kHeads)),
                      {}};
  if (told.has("key") && told.has("theta") && told.has("eta") && told.has("alpha"))
    return Transition{Kind::kMomentum,
                      0,
                      eigenvalues(told.get("theta", 3, "[B,T,H]"), told.get("eta", 3, "[B,T,H]"),
                                  told.get("alpha", 3, "[B,T,H]"), told.get("key", 4, kHeads)),
                      {}};
  if (told.has("jacobian"))
    return Transition{Kind::kJacobian, 0, eigenvalues_of(told.square("jacobian", 5, "[B,T,H,n,n]")),
                      told.get("outputs", 4, "[B,T+1,H,D]")};
  if (told.has("gate")) return Transition{Kind::kDiagonal, 0, told.get("gate", 4, "[B,T,H,n]"), {}};
  if (told.has("transition"))
    return Transition{Kind::kDiagonal, 0, one_head(told.get("transition", -3, "[B,T,..]")), {}};
  if (told.has("forget_gate"))
    return Transition{
        Kind::kForgetGate, 0, told.get("forget_gate", 3, "[B,T,H]").unsqueeze(-1), {}};
  if (told.has("matrix"))
    return Transition{
        Kind::kMatrix, 0, eigenvalues_of(told.square("matrix", 4, "[B,T,n,n]")).unsqueeze(2), {}};
  return {};
}

// The product is I - sum_j beta_j k_j w_j^T with w_j = k_j - sum_{i<j} beta_i (k_i . k_j) w_i, so
// what it does beyond the identity happens among the N keys: its other eigenvalues are
// 1 - eig(M), M_ij = beta_j w_i . k_j. An N by N problem instead of a K by K one.
Tensor eigenvalues(const Householders& product) {
  const Tensor k = product.k.to(torch::kFloat64).permute({0, 1, 3, 2, 4});     // [B,T,H,N,K]
  const Tensor beta = product.beta.to(torch::kFloat64).permute({0, 1, 3, 2});  // [B,T,H,N]
  const int64_t N = k.size(3);
  if (product.log_gate.defined() && product.log_gate.dim() == 4) {
    // A diagonal that is not a number times the identity keeps no direction apart.
    Tensor A = product.log_gate.to(torch::kFloat64).exp().diag_embed();  // [B,T,H,K,K]
    for (int64_t j = 0; j < N; ++j) {
      const Tensor kj = k.select(3, j).unsqueeze(-1), bj = beta.select(3, j);
      A = A - bj.unsqueeze(-1).unsqueeze(-1) * kj.matmul(kj.transpose(-1, -2).matmul(A));
    }
    return torch::linalg_eigvals(A);
  }
  std::vector<Tensor> w;
  for (int64_t j = 0; j < N; ++j) {
    const Tensor kj = k.select(3, j);
    Tensor wj = kj;
    for (int64_t i = 0; i < j; ++i)
      wj = wj - (beta.select(3, i) * (k.select(3, i) * kj).sum(-1)).unsqueeze(-1) * w[size_t(i)];
    w.push_back(wj);
  }
  const Tensor M = torch::matmul(torch::stack(w, 3), k.transpose(-1, -2)) * beta.unsqueeze(-2);
  Tensor values = N == 1 ? M.squeeze(-1).to(torch::kComplexDouble) : torch::linalg_eigvals(M);
  values = 1 - values;
  if (!product.log_gate.defined()) return values;
  return values * product.log_gate.to(torch::kFloat64).exp().unsqueeze(-1);
}

Tensor eigenvalues(const Tensor& log_w, const Tensor& a, const Tensor& kk) {
  const Tensor w = log_w.to(torch::kFloat64).exp(), u = kk.to(torch::kFloat64);
  const Tensor A = w.diag_embed() - (a.to(torch::kFloat64) * u).unsqueeze(-1) * u.unsqueeze(-2);
  return torch::linalg_eigvals(A);
}

// In the plane of the key the matrix is [[1 - alpha - s, eta], [-s, eta]] with s = theta |k|^2.
Tensor eigenvalues(const Tensor& theta, const Tensor& eta, const Tensor& alpha, const Tensor& key) {
  const auto wide = [](const Tensor& x) { return x.to(torch::kFloat64); };
  const Tensor keep = 1 - wide(alpha),
               half = (keep + wide(eta) - wide(theta) * wide(key).square().sum(-1)) / 2;
  const Tensor root = (half.square() - keep * wide(eta)).to(torch::kComplexDouble).sqrt();
  return torch::stack({half + root, half - root}, -1);
}

using torch::Tensor;

std::optional<std::complex<double>> best_map(const Tensor& before, const Tensor& after) {
  constexpr double kHardly = 0.1, kExplained = 0.9;
  constexpr int64_t kPerDirection = 4;
  const auto centred = [](const Tensor& x) {
    const Tensor wide = x.to(torch::kFloat64);
    return wide - wide.mean(0, true);
  };
  if (before.size(0) < 2 * kPerDirection) return {};
  const Tensor x = centred(before), y = centred(after);
  const double varies = y.square().sum().item<double>();
  const auto [U, S, Vh] = torch::linalg_svd(x, false);
  const double largest = S.max().item<double>();
  if (!(largest > 1e-9) || !(varies > 1e-18)) return {};
  const int64_t rank = (S > kHardly * largest).sum().item<int64_t>();
  if (before.size(0) < kPerDirection * rank) return {};
  const Tensor u = U.narrow(1, 0, rank), s = S.narrow(0, 0, rank), v = Vh.narrow(0, 0, rank);
  // Of the error of y, what lies outside the span of the coordinates u.
  const double left = (y - u.matmul(u.t().matmul(y))).square().sum().item<double>();
  if (left > (1 - kExplained) * varies) return {};
  const Tensor A = v.matmul(y.t()).matmul(u / s);  // in the coordinates of v
  const Tensor values = torch::linalg_eigvals(A).to(torch::kComplexDouble).contiguous();
  const auto* z = values.const_data_ptr<c10::complex<double>>();
  std::complex<double> out = 0;
  // Of a conjugate pair, the upper one.
  for (int64_t i = 0; i < rank; ++i)
    if (const std::complex<double> value(z[i].real(), z[i].imag());
        std::abs(value) > std::abs(out) - 1e-12 && value.imag() > -1e-9)
      out = value;
  return out;
}

}  // namespace lrnn::experiments
