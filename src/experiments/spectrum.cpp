#include "experiments/spectrum.h"

#include <algorithm>

#include "ops/torch.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

// Closer to 1 than this, a transition is taken to leave the state alone along that direction.
constexpr double kUnit = 1e-3;
constexpr int64_t kLongest = 256;  // tokens read of one example

using Values = std::vector<std::complex<double>>;

std::complex<double> middle(Values& values) {
  const auto at = values.begin() + int64_t(values.size() / 2);
  std::nth_element(values.begin(), at, values.end(),
                   [](auto a, auto b) { return a.real() < b.real(); });
  return *at;
}

struct Collector {
  std::vector<HeadSpectrum> heads;
  std::vector<std::map<int64_t, Values>> by_token;

  void add(const std::vector<Transition>& layers, const std::vector<int64_t>& tokens) {
    size_t at = 0;
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      const Tensor values = eigenvalues(layers[layer]).to(torch::kComplexDouble).contiguous();
      const int64_t T = values.size(1), H = values.size(2), N = values.size(3);
      const auto* z = values.const_data_ptr<c10::complex<double>>();
      for (int64_t h = 0; h < H; ++h, ++at) {
        if (heads.size() == at) {
          heads.push_back({int64_t(layer) + 1, h + 1, N, {}, 0, {}});
          by_token.emplace_back();
        }
        for (int64_t t = 0; t < T; ++t) add(at, tokens[size_t(t)], z + (t * H + h) * N, N);
      }
    }
  }

  void add(size_t head, int64_t token, const c10::complex<double>* z, int64_t N) {
    std::complex<double> farthest = 1;
    for (int64_t j = 0; j < N; ++j) {
      const std::complex<double> value(z[j].real(), z[j].imag());
      const double distance = std::abs(value - 1.0);
      if (distance > kUnit)
        heads[head].values.push_back(value);
      else
        ++heads[head].unit;
      // Of a conjugate pair, the upper one.
      if (distance > std::abs(farthest - 1.0) - 1e-9 && value.imag() > -1e-9) farthest = value;
    }
    by_token[head][token].push_back(farthest);
  }
};

// One transition per layer, from one pass over the tokens.
std::vector<Transition> read(model::Model& model, const std::vector<int64_t>& tokens) {
  std::map<std::string, Tensor> seen;
  mixers::Context context;
  context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
  model::State state;
  model.forward(torch::tensor(tokens, torch::kInt64).unsqueeze(0), state, context);
  std::vector<Transition> out;
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const std::string at = cat("layers.", layer, ".");
    check(seen.contains(at + "beta") && seen.contains(at + "k"), "layer ", layer + 1,
          " is not made of Householder products, so it has no such spectrum");
    out.push_back({seen[at + "beta"], seen[at + "k"], seen[at + "log_gate"]});
  }
  return out;
}

}  // namespace

// The product is I - sum_j beta_j k_j w_j^T with w_j = k_j - sum_{i<j} beta_i (k_i . k_j) w_i, so
// what it does beyond the identity happens among the N keys: its other eigenvalues are
// 1 - eig(M), M_ij = beta_j w_i . k_j. An N by N problem instead of a K by K one.
Tensor eigenvalues(const Transition& transition) {
  const Tensor k = transition.k.to(torch::kFloat64).permute({0, 1, 3, 2, 4});     // [B,T,H,N,K]
  const Tensor beta = transition.beta.to(torch::kFloat64).permute({0, 1, 3, 2});  // [B,T,H,N]
  const int64_t N = k.size(3);
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
  if (!transition.log_gate.defined()) return values;
  return values * transition.log_gate.to(torch::kFloat64).exp().unsqueeze(-1);
}

std::vector<HeadSpectrum> spectrum(model::Model& model, const tasks::Task& task, uint64_t seed,
                                   int64_t samples) {
  torch::InferenceMode no_gradients;
  Collector all;
  for (int64_t i = 0; i < samples; ++i) {
    auto tokens = task.sample(seed, tasks::Split::kEval, uint64_t(i)).input;
    if (int64_t(tokens.size()) > kLongest) tokens.resize(size_t(kLongest));
    const auto transitions = read(model, tokens);
    all.add(transitions, tokens);
  }
  for (size_t head = 0; head < all.heads.size(); ++head)
    for (auto& [token, values] : all.by_token[head])
      all.heads[head].by_token[token] = middle(values);
  return std::move(all.heads);
}

}  // namespace lrnn::experiments
