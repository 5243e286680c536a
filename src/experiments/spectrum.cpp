#include "experiments/spectrum.h"

#include <algorithm>
#include <optional>

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

// The eigenvalues of one layer at every token of one sequence.
struct Layer {
  int64_t number, householders;  // counted from 1; 0: of another kind
  Tensor values;                 // [1,T,H,n]
};

struct Collector {
  std::vector<HeadSpectrum> heads;
  std::vector<std::map<int64_t, Values>> by_token;

  void add(const std::vector<Layer>& layers, const std::vector<int64_t>& tokens) {
    size_t at = 0;
    for (const auto& layer : layers) {
      const Tensor values = layer.values.to(torch::kComplexDouble).contiguous();
      const int64_t T = values.size(1), H = values.size(2), N = values.size(3);
      const auto* z = values.const_data_ptr<c10::complex<double>>();
      for (int64_t h = 0; h < H; ++h, ++at) {
        if (heads.size() == at) {
          heads.push_back({layer.number, h + 1, layer.householders, {}, 0, {}});
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

// A diagonal [1,T,channels,..] as one head. Of thousands of channels an even choice: the stride is
// odd, so that it meets every number of a channel's state.
Tensor one_head(const Tensor& values) {
  constexpr int64_t kMost = 128;
  const Tensor flat = values.flatten(2).unsqueeze(2);
  return flat.slice(-1, 0, flat.size(-1), (flat.size(-1) / kMost) | 1);
}

// What the layer that saw these has, if it has any.
std::optional<Layer> layer_of(std::map<std::string, Tensor>& seen, int64_t number) {
  const auto has = [&](const char* name) { return seen.contains(name); };
  if (has("beta") && has("k"))
    return Layer{number, seen["k"].size(2),
                 eigenvalues({seen["beta"], seen["k"], seen["log_gate"]})};
  if (has("kk")) return Layer{number, 0, eigenvalues(seen["log_w"], seen["a"], seen["kk"])};
  if (has("gate")) return Layer{number, 0, seen["gate"]};
  if (has("transition")) return Layer{number, 0, one_head(seen["transition"])};
  if (has("f")) {
    const Tensor f = seen["f"].sigmoid();
    return Layer{number, 0, f.dim() == 3 ? f.unsqueeze(-1) : f};
  }
  if (has("matrix"))
    return Layer{number, 0, torch::linalg_eigvals(seen["matrix"].to(torch::kFloat64)).unsqueeze(2)};
  return {};
}

// The layers that have eigenvalues, from one pass over the tokens.
std::vector<Layer> read(model::Model& model, const std::vector<int64_t>& tokens) {
  std::map<std::string, Tensor> seen;
  mixers::Context context;
  context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
  model::State state;
  model.forward(torch::tensor(tokens, torch::kInt64).unsqueeze(0), state, context);
  std::vector<Layer> out;
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const std::string at = cat("layers.", layer, ".");
    std::map<std::string, Tensor> own;
    for (const auto& [name, value] : seen)
      if (name.starts_with(at)) own[name.substr(at.size())] = value;
    if (auto found = layer_of(own, layer + 1)) out.push_back(std::move(*found));
  }
  if (out.empty())
    throw Error(cat("the mixer ", model.config().mixer.text("name"),
                    " multiplies no state from token to token, so it has no eigenvalues"),
                "attention keeps every token as it is; `lrnn mixers` lists the recurrent ones");
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

Tensor eigenvalues(const Tensor& log_w, const Tensor& a, const Tensor& kk) {
  const Tensor w = log_w.to(torch::kFloat64).exp(), u = kk.to(torch::kFloat64);
  const Tensor A = w.diag_embed() - (a.to(torch::kFloat64) * u).unsqueeze(-1) * u.unsqueeze(-2);
  return torch::linalg_eigvals(A);
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
