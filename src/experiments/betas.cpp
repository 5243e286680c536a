#include "experiments/betas.h"

#include <algorithm>

#include "ops/torch.h"
#include "training/token_losses.h"

namespace lrnn::experiments {

void BetaShare::add(double beta) {
  ++count, above += beta > 1, ends += beta > 2 - 1e-3;
  sum += beta, largest = std::max(largest, beta);
}

void BetaShare::add(const BetaShare& other) {
  count += other.count, above += other.above, ends += other.ends, sum += other.sum;
  largest = std::max(largest, other.largest);
}

namespace {

using torch::Tensor;

constexpr size_t kPlaces = 6;

// One layer over some tokens: beta [1,T,N,H]. `here`: of each of these tokens, over all layers.
void add_layer(int64_t layer, const Tensor& told, const std::vector<int64_t>& tokens,
               std::vector<BetaShare>& here, Betas& to) {
  const Tensor beta = told.to(torch::kCPU, torch::kFloat64).contiguous();
  if (beta.dim() != 4 || beta.size(1) != int64_t(tokens.size())) return;
  const int64_t reflections = beta.size(2), heads = beta.size(3);
  auto first = std::find_if(to.heads.begin(), to.heads.end(),
                            [&](const auto& h) { return h.layer == layer; });
  if (first == to.heads.end()) {
    for (int64_t h = 0; h < heads; ++h) to.heads.push_back({layer, h + 1, {}});
    first = to.heads.end() - heads;
  }
  const double* value = beta.const_data_ptr<double>();
  for (size_t t = 0; t < tokens.size(); ++t)
    for (int64_t n = 0; n < reflections; ++n)
      for (int64_t h = 0; h < heads; ++h, ++value) first[h].share.add(*value), here[t].add(*value);
}

// A piece of a window that begins at `first`, all layers read.
void add_piece(int64_t window, int64_t first, const std::vector<int64_t>& tokens,
               const std::vector<BetaShare>& here, Betas& to) {
  to.by_position.resize(std::max(to.by_position.size(), size_t(first) + tokens.size()));
  for (size_t t = 0; t < tokens.size(); ++t) {
    to.all.add(here[t]), to.by_token[tokens[t]].add(here[t]);
    to.by_position[size_t(first) + t].add(here[t]);
    if (here[t].above > 0) to.places.push_back({window, first + int64_t(t), here[t]});
  }
  const auto more = [](const Betas::Place& a, const Betas::Place& b) {
    return a.share.share() > b.share.share();
  };
  std::stable_sort(to.places.begin(), to.places.end(), more);
  if (to.places.size() > kPlaces) to.places.resize(kPlaces);
}

}  // namespace

Betas betas(model::Model& model, const tasks::Task& task, uint64_t seed, int64_t samples) {
  const torch::InferenceMode no_gradients;
  Betas out;
  const auto length = task.length(tasks::Split::kEval);
  samples = std::min(samples, task.most_samples(length));
  for (int64_t i = 0; i < samples; ++i) {
    const auto tokens = task.sample(seed, tasks::Split::kEval, uint64_t(i)).input;
    model::State state;
    for (size_t first = 0; first < tokens.size(); first += size_t(training::kTokensPerPiece)) {
      const size_t end = std::min(tokens.size(), first + size_t(training::kTokensPerPiece));
      const std::vector<int64_t> piece(tokens.begin() + ptrdiff_t(first),
                                       tokens.begin() + ptrdiff_t(end));
      std::vector<BetaShare> here(piece.size());
      mixers::Context context;
      context.read_at = torch::tensor({int64_t(piece.size()) - 1}, torch::kInt64);
      context.observe = [&](const std::string& name, const Tensor& value) {
        const std::string before = "layers.", after = ".beta";
        if (name.starts_with(before) && name.ends_with(after))
          add_layer(std::stoll(name.substr(before.size())) + 1, value, piece, here, out);
      };
      model.forward(torch::tensor(piece, torch::kInt64).unsqueeze(0), state, context);
      add_piece(i, int64_t(first), piece, here, out);
    }
    out.tokens += int64_t(tokens.size());
  }
  return out;
}

}  // namespace lrnn::experiments
