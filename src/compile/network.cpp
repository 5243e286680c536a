#include "compile/network.h"

#include <algorithm>

namespace lrnn::compile {
namespace {

template <class Of> int64_t largest_of(const std::vector<Layer>& layers, int64_t least, Of of) {
  for (const auto& layer : layers) least = std::max<int64_t>(least, of(layer));
  return least;
}

template <class Of> int64_t largest_head(const std::vector<Layer>& layers, Of of) {
  return largest_of(layers, 1, [&](const Layer& layer) {
    int64_t most = 1;
    for (const auto& h : layer.heads) most = std::max<int64_t>(most, of(h));
    return most;
  });
}

}  // namespace

int64_t Network::householders() const {
  return largest_head(layers, [](const Head& h) {
    size_t most = 1;
    for (const auto& a : h.actions) most = std::max(most, a.steps.size());
    return int64_t(most);
  });
}
int64_t Network::heads() const {
  return largest_of(layers, 1, [](const Layer& l) { return int64_t(l.heads.size()); });
}
int64_t Network::key_dim() const {
  return largest_head(layers, [](const Head& h) { return h.rows; });
}
int64_t Network::value_dim() const {
  return largest_head(layers, [](const Head& h) { return h.cols; });
}
int64_t Network::gates() const {
  return largest_of(layers, 0, [](const Layer& l) { return int64_t(l.gates.size()); });
}

Gate all_of(const std::vector<Form>& literals, std::vector<std::pair<int64_t, double>> out) {
  Gate gate{{}, 0.5, std::move(out)};
  for (const auto& l : literals) gate.sum.add(l);
  gate.sum.constant -= double(literals.size()) - 0.5;
  return gate;
}

}  // namespace lrnn::compile
