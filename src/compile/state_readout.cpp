#include "compile/state_readout.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "compile/scales.h"
#include "ops/torch.h"

namespace lrnn::compile {
namespace {

bool is_answer(const Feature& f) { return f.name.starts_with("answer "); }

double value_of(const Form& form, const std::vector<double>& facts) {
  double out = form.constant;
  for (const auto& [f, weight] : form.terms) out += weight * facts[size_t(f)];
  return out;
}

}  // namespace

StateReadout::StateReadout(const Compiled& c)
    : net_(build(c.plan, c.subject.automaton, labels_of(c.subject.automaton, false))->network) {
  std::map<std::string, int64_t> own;
  const auto& features = c.built->network.features;
  for (size_t f = 0; f < features.size(); ++f) own.emplace(features[f].name, int64_t(f));
  for (const auto& f : net_.features) {
    place_.push_back(is_answer(f) ? -1 : own.at(f.name));
    // As the model stores it, which may be otherwise than a model that answers with states would.
    const Feature& stored = is_answer(f) ? f : features[size_t(place_.back())];
    offset_.push_back(stored.offset), unit_.push_back(stream_unit(stored));
  }
  for (const auto& gate : net_.layers.back().gates)
    if (std::any_of(gate.out.begin(), gate.out.end(),
                    [&](const auto& to) { return place_[size_t(to.first)] < 0; }))
      gates_.push_back(&gate);
}

int64_t StateReadout::state(const double* x) const {
  std::vector<double> facts;
  for (size_t f = 0; f < place_.size(); ++f)
    facts.push_back(place_[f] < 0 ? net_.features[f].initial
                                  : x[place_[f]] / unit_[f] - offset_[f]);
  const auto before = facts;
  for (const Gate* gate : gates_)
    if (value_of(gate->sum, before) > 0)
      for (const auto& [to, weight] : gate->out) facts[size_t(to)] += weight;
  int64_t best = -1;
  double most = 0;
  for (size_t s = 0; s < net_.labels.size(); ++s) {
    if (net_.labels[s].terms.empty()) continue;  // never the answer
    const double v = value_of(net_.labels[s], facts);
    if (best < 0 || v > most) most = v, best = int64_t(s);
  }
  return std::max<int64_t>(best, 0);
}

std::vector<int64_t> StateReadout::states(const torch::Tensor& stream) const {
  const torch::Tensor x = stream.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  const int64_t width = x.size(-1);
  std::vector<int64_t> out;
  for (int64_t row = 0; row < x.numel() / width; ++row)
    out.push_back(state(x.data_ptr<double>() + row * width));
  return out;
}

}  // namespace lrnn::compile
