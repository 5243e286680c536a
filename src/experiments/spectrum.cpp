#include "experiments/spectrum.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "experiments/transition.h"
#include "training/threads.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

// Closer to 1 than this, a transition is taken to leave the state alone along that direction.
constexpr double kUnit = 1e-3;
constexpr int64_t kLongest = 256;  // tokens read of one example
// The eigenvalues of an n x n Jacobian cost about n^3: as many positions of all examples together
// as take a second or two.
constexpr double kJacobianWork = 4e7;
constexpr int64_t kFewestPositions = 16;

using Values = std::vector<std::complex<double>>;

std::complex<double> middle(Values& values) {
  const auto at = values.begin() + int64_t(values.size() / 2);
  std::nth_element(values.begin(), at, values.end(),
                   [](auto a, auto b) { return a.real() < b.real(); });
  return *at;
}

// What the layers of the model told about the tokens of one sequence.
struct Layer {
  int64_t number;  // counted from 1
  Observed told;
};

class Collector {
 public:
  void add(const std::vector<Layer>& layers, const std::vector<int64_t>& tokens) {
    size_t at = 0;
    for (const auto& [number, told] : layers) {
      const auto transition = read_transition(told);
      if (!transition) continue;
      const Tensor values = transition->values.to(torch::kComplexDouble).contiguous();
      const int64_t T = values.size(1), H = values.size(2), N = values.size(3);
      const auto* z = values.const_data_ptr<c10::complex<double>>();
      for (int64_t h = 0; h < H; ++h, ++at) {
        if (heads_.size() == at) {
          HeadSpectrum head;
          head.layer = number, head.head = h + 1;
          head.kind = transition->kind, head.householders = transition->householders;
          heads_.push_back(head), by_token_.emplace_back(), outputs_.emplace_back();
        }
        for (int64_t t = 0; t < T; ++t) {
          add(at, tokens[size_t(t)], z + (t * H + h) * N, N);
          if (const Tensor& outputs = transition->outputs; outputs.defined())
            outputs_[at][tokens[size_t(t)]].push_back(
                outputs[0].narrow(0, t, 2).select(1, h).clone());
        }
      }
    }
  }

  std::vector<HeadSpectrum> result() {
    for (size_t head = 0; head < heads_.size(); ++head) {
      for (auto& [token, values] : by_token_[head]) heads_[head].by_token[token] = middle(values);
      for (const auto& [token, pairs] : outputs_[head]) {
        const Tensor all = torch::stack(pairs);  // [n,2,D]
        if (const auto z = best_map(all.select(1, 0), all.select(1, 1)))
          heads_[head].fit[token] = *z;
      }
    }
    return std::move(heads_);
  }

 private:
  void add(size_t head, int64_t token, const c10::complex<double>* z, int64_t N) {
    std::complex<double> farthest = 1;
    for (int64_t j = 0; j < N; ++j) {
      const std::complex<double> value(z[j].real(), z[j].imag());
      const double distance = std::abs(value - 1.0);
      if (distance > kUnit)
        heads_[head].values.push_back(value), heads_[head].tokens.push_back(token);
      else
        ++heads_[head].unit;
      // Of a conjugate pair, the upper one.
      if (distance > std::abs(farthest - 1.0) - 1e-9 && value.imag() > -1e-9) farthest = value;
    }
    by_token_[head][token].push_back(farthest);
  }

  std::vector<HeadSpectrum> heads_;
  std::vector<std::map<int64_t, Values>> by_token_;
  std::vector<std::map<int64_t, std::vector<Tensor>>> outputs_;  // before and after: [2,D]
};

std::vector<int64_t> part(const std::vector<int64_t>& tokens, int64_t begin, int64_t end) {
  return {tokens.begin() + begin, tokens.begin() + end};
}

Tensor as_batch(const std::vector<int64_t>& tokens) {
  return torch::tensor(tokens, torch::kInt64).unsqueeze(0);
}

std::vector<Layer> look(model::Model& model, const std::vector<int64_t>& tokens,
                        model::State& state) {
  Observed seen;
  mixers::Context context;
  context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
  model.forward(as_batch(tokens), state, context);
  std::vector<Layer> out;
  for (int64_t layer = 0; layer < model.config().layers; ++layer) {
    const std::string at = cat("layers.", layer, ".");
    out.push_back({layer + 1, {}});
    for (const auto& [name, value] : seen)
      if (name.starts_with(at)) out.back().told[name.substr(at.size())] = value;
  }
  return out;
}

// How many positions of each example to look at, by what a look at one token shows; nothing: all.
std::optional<int64_t> positions_each(const std::vector<Layer>& first, int64_t samples) {
  double work = 0;
  for (const auto& [number, told] : first)
    if (const auto at = told.find("jacobian"); at != told.end() && at->second.dim() == 5)
      work = std::max(work, double(at->second.size(2)) * std::pow(double(at->second.size(4)), 3));
  if (work == 0) return {};
  const int64_t all = std::max(kFewestPositions, int64_t(kJacobianWork / work));
  return (all + samples - 1) / samples;
}

// At `count` positions spread over the example, and past the others without looking.
void read_some(model::Model& model, const std::vector<int64_t>& tokens, int64_t count,
               Collector& all) {
  const int64_t T = int64_t(tokens.size());
  model::State state;
  int64_t read = 0;
  for (int64_t i = 0; i < std::min(count, T); ++i) {
    const int64_t at = (2 * i + 1) * T / (2 * std::min(count, T));
    if (at > read) model.forward(as_batch(part(tokens, read, at)), state);
    all.add(look(model, part(tokens, at, at + 1), state), part(tokens, at, at + 1));
    read = at + 1;
  }
}

[[noreturn]] void fail_for(const model::ModelConfig& config) {
  for (int64_t layer = 0; layer < config.layers; ++layer)
    if (const auto& at = config.mixer_of(layer); !mixers::make(config.width, at)->state_grows())
      throw nothing_told(at.text("name"), false);
  throw nothing_told(config.mixer.text("name"), true);
}

}  // namespace

Error nothing_told(const std::string& mixer, bool keeps_tokens) {
  if (keeps_tokens)
    return Error(cat("the mixer ", mixer,
                     " multiplies no state from token to token, so it has no eigenvalues"),
                 "attention keeps every token as it is; `lrnn mixers` lists the recurrent ones");
  return Error(cat("the mixer ", mixer, " does not say what it applies to its state"),
               "let its forward() call context.observe with one of the names that "
               "src/mixers/mixer.h lists, such as \"transition\" for a diagonal");
}

std::vector<HeadSpectrum> spectrum(model::Model& model, const tasks::Task& task, uint64_t seed,
                                   int64_t samples) {
  torch::InferenceMode no_gradients;
  Collector all;
  std::optional<int64_t> some;
  // Many small matrices, one after the other: threads would only wait for each other.
  std::unique_ptr<training::Threads> alone;
  for (int64_t i = 0; i < samples; ++i) {
    auto tokens = task.sample(seed, tasks::Split::kEval, uint64_t(i)).input;
    if (int64_t(tokens.size()) > kLongest) tokens.resize(size_t(kLongest));
    if (tokens.empty()) continue;
    model::State state;
    if (i == 0) some = positions_each(look(model, part(tokens, 0, 1), state), samples);
    state.clear();
    if (some && !alone) alone = std::make_unique<training::Threads>(1);
    if (some)
      read_some(model, tokens, *some, all);
    else
      all.add(look(model, tokens, state), tokens);
  }
  auto out = all.result();
  if (out.empty()) fail_for(model.config());
  return out;
}

}  // namespace lrnn::experiments
