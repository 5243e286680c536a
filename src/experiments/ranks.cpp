#include "experiments/ranks.h"

#include <algorithm>
#include <map>

#include "experiments/effective_rank.h"
#include "experiments/state_walk.h"
#include "training/precision.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

constexpr int64_t kTokensPerPiece = 512;           // what a layer tells of so many is held
constexpr int64_t kStateBytes = int64_t{1} << 26;  // states whose ranks are worked out together

// The states that are looked at, until there are enough of them.
class Looks {
 public:
  explicit Looks(std::vector<Tensor>& to) : to_(to) {}
  void add(const Tensor& state) {
    held_.push_back(state.clone());
    if (int64_t(held_.size()) * state.numel() * 4 >= kStateBytes) flush();
  }
  void flush() {
    if (!held_.empty()) to_.push_back(effective_rank(torch::stack(held_)));
    held_.clear();
  }

 private:
  std::vector<Tensor>& to_;  // [n,H] each
  std::vector<Tensor> held_;
};

// One layer along one sequence.
struct RankedLayer {
  StateWalk walk = {};
  int64_t tokens = 0, steps = 1, most = 0;
  std::vector<Tensor> ranks = {};

  void read(const Observed& told, int64_t every) {
    steps = StateWalk::steps(told);
    Looks looks(ranks);
    int64_t step = 0;
    walk.read(told, [&](const Tensor& state) {
      most = std::min(state.size(-1), state.size(-2));
      if (tokens % every == 0) looks.add(state);
      if (++step == steps) step = 0, ++tokens;
    });
    looks.flush();
  }
};

class Walker {
 public:
  Walker(model::Model& model, const RankOptions& options) : model_(model), options_(options) {}

  // The layers with a matrix state, counted from 0.
  std::map<int64_t, RankedLayer> read(const std::vector<int64_t>& tokens,
                                      const std::function<void(int64_t)>& told) {
    layers_.clear();
    model::State state;
    for (size_t first = 0; first < tokens.size(); first += kTokensPerPiece) {
      const size_t end = std::min(tokens.size(), first + kTokensPerPiece);
      mixers::Context context;
      context.accuracy = options_.accuracy;
      context.read_at = torch::tensor({int64_t(end - first) - 1}, model_.device());
      context.observe = [&](const std::string& name, const Tensor& value) { hear(name, value); };
      const Tensor piece = torch::tensor(
          std::vector<int64_t>(tokens.begin() + ptrdiff_t(first), tokens.begin() + ptrdiff_t(end)),
          torch::kInt64);
      model_.forward(piece.unsqueeze(0).to(model_.device()), state, context);
      finish();
      told(int64_t(end));
    }
    return std::move(layers_);
  }

 private:
  // "layers.3.beta"; layers come one after another, so that what one told can go before the next.
  void hear(const std::string& name, const Tensor& value) {
    const std::string before = "layers.";
    if (!name.starts_with(before)) return;
    const size_t dot = name.find('.', before.size());
    const int64_t layer = std::stoll(name.substr(before.size(), dot - before.size()));
    if (layer != layer_) finish();
    layer_ = layer, told_[name.substr(dot + 1)] = value;
  }
  void finish() {
    if (StateWalk::possible(told_)) layers_[layer_].read(told_, options_.every);
    told_.clear(), layer_ = -1;
  }

  model::Model& model_;
  const RankOptions& options_;
  std::map<int64_t, RankedLayer> layers_;
  int64_t layer_ = -1;
  Observed told_;
};

void add(const std::map<int64_t, RankedLayer>& layers, DomainRanks& to) {
  ++to.sequences;
  size_t next = 0;
  for (const auto& [number, layer] : layers) {
    const Tensor all = torch::cat(layer.ranks).t().contiguous();  // [H,n]
    for (int64_t h = 0; h < all.size(0); ++h, ++next) {
      if (to.sequences == 1)
        to.heads.push_back(
            {number + 1, h + 1, layer.most, layer.steps, std::vector<double>(size_t(all.size(1)))});
      const double* const from = all[h].const_data_ptr<double>();
      auto& rank = to.heads[next].rank;
      // The mean so far moves towards the new one.
      for (size_t i = 0; i < rank.size(); ++i)
        rank[i] += (from[i] - rank[i]) / double(to.sequences);
    }
  }
}

}  // namespace

std::vector<DomainRanks> ranks(model::Model& model, const tasks::Task& task,
                               const RankOptions& options,
                               const std::function<void(int64_t)>& told) {
  const torch::InferenceMode no_gradients;
  const training::Precision precision(options.precision, model.device().type());
  std::vector<DomainRanks> out;
  for (const auto& name : task.domains()) out.push_back({name, 0, {}, {}});
  const Range length{options.length, options.length};
  const int64_t samples =
      std::min(options.samples ? options.samples : int64_t(out.size()), task.most_samples(length));
  const auto material = task.material();
  Walker walker(model, options);
  for (int64_t i = 0; i < samples; ++i) {
    const auto example = task.sample(options.seed, tasks::Split::kEval, uint64_t(i), length);
    auto& domain = out[size_t(example.domain)];
    if (domain.sequences == 0 && material && material->bos)
      for (size_t t = 0; t < example.input.size(); ++t)
        if (example.input[t] == *material->bos) domain.beginnings.push_back(int64_t(t));
    const auto layers = walker.read(example.input, [&](int64_t tokens) {
      if (told) told(i * options.length + tokens);
    });
    add(layers, domain);
  }
  std::erase_if(out, [](const auto& domain) { return domain.sequences == 0; });
  return out;
}

}  // namespace lrnn::experiments
