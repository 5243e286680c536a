#include "compile/errors.h"

#include <algorithm>
#include <cmath>

#include "compile/scales.h"

namespace lrnn::compile {

using torch::Tensor;

namespace {

constexpr int64_t kBlock = 1 << 20;  // entries of a matrix that are looked at together

}  // namespace

// Tokens before the word, whose dimensions are no features, come instead of its letters.
Errors::Errors(const Network& net, const Tensors& tensors, double delta)
    : tensors_(tensors), delta_(delta) {
  const int64_t width = weight("lm_head").size(1);
  most_ = torch::full({width}, kStreamUnit, torch::kFloat64);
  noise_ = torch::full({width}, delta, torch::kFloat64);
  resized_ = torch::zeros({width}, torch::kFloat64);
  choice_ = torch::full({width}, net.symbols.empty() ? 0 : net.symbols[0], torch::kInt64);
  for (int64_t f = 0; f < int64_t(net.features.size()); ++f) {
    const auto& feature = net.features[size_t(f)];
    most_[f] = stream_unit(feature) * (std::abs(feature.offset) + feature.most);
    choice_[f] = feature.choice < 0 ? f : feature.choice;
  }
}

// Rounding at most doubles what is added to a number that can be represented.
void Errors::add(const std::vector<Source>& sources, double everywhere) {
  sources_.insert(sources_.end(), sources.begin(), sources.end());
  noise_ += 2 * everywhere;
}

void Errors::resize(int64_t column, double share) {
  double& size = resized_.data_ptr<double>()[column];
  size = std::max(size, kStreamUnit * share);
}

Input Errors::normed(const std::string& norm) const {
  const Tensor w = weight(norm).abs();
  Input x{most_ * w / kNormRoot, {}, {}, (w + delta_) / kNormRoot};
  x.scaled = resized_ * x.factor + most_ * delta_ / kNormRoot + 4 * kUlp * x.most;
  x.noise = noise_ * x.factor;
  return x;
}

// The largest sum over each row when of every choice only one entry is there.
Tensor Errors::once(const Tensor& x, const Tensor& choice) {
  const Tensor out = torch::zeros_like(x);
  return out.scatter_reduce(1, choice.expand_as(x), x, "amax").sum(1);
}

// Only what the norm lets through is looked at: a product reads nothing else.
Off Errors::product(const Tensor& w, const Input& x, double mass) const {
  const Tensor read = x.most.nonzero().squeeze(1);
  const auto at = [&](const Tensor& v) { return v.index_select(0, read); };
  const Tensor most = at(x.most), noise = at(x.noise), scaled = at(x.scaled);
  const Tensor choice = std::get<1>(torch::_unique(at(choice_), true, true)).unsqueeze(0);
  double wrong = x.noise.sum().item<double>();
  std::vector<std::pair<const Source*, Tensor>> sources;  // by how much each is read
  for (const auto& s : sources_) {
    const Tensor factor =
        torch::zeros_like(x.factor).index_copy_(0, s.columns, x.factor.index_select(0, s.columns));
    wrong += s.size * largest(factor) * (s.length ? std::sqrt(double(s.columns.size(0))) : 1);
    if (largest(at(factor)) > 0) sources.emplace_back(&s, at(factor));
  }
  Off out;
  std::vector<Tensor> parts[3];
  const int64_t rows = std::max<int64_t>(1, kBlock / w.size(1));
  for (int64_t r = 0; r < w.size(0); r += rows) {
    const Tensor size = w.slice(0, r, std::min(w.size(0), r + rows)).index_select(1, read).abs();
    const Tensor terms = size * most;
    parts[0].push_back(once(size * scaled, choice));
    parts[1].push_back(size.matmul(noise));
    for (const auto& [s, factor] : sources)
      parts[1].back() +=
          s->size * (s->length ? (size * factor).norm(2, 1) : (size * factor).amax(1));
    parts[2].push_back(kUlp * once(terms, choice) *
                       (1 + once((terms > 0).to(torch::kFloat64), choice)));
  }
  out.scaled = torch::cat(parts[0]), out.shared = torch::cat(parts[1]);
  out.rounding = torch::cat(parts[2]);
  out.moved = torch::full_like(out.shared, delta_ * (mass + wrong));
  return out;
}

Off Errors::product(const std::string& name, const Input& x) const {
  return product(weight(name), x, once(x.most.unsqueeze(0), choice_.unsqueeze(0)).item<double>());
}

}  // namespace lrnn::compile
