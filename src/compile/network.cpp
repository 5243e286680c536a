#include "compile/network.h"

#include <algorithm>
#include <cmath>

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

double read_offset(int64_t largest) {
  const double needed = 6 * double(largest) * double(largest);
  return 1.5 * std::clamp(std::exp2(std::ceil(std::log2(needed))), kReadOffset / 1.5, 8192.0);
}

void Network::choose(const std::vector<int64_t>& among) {
  for (const int64_t f : among) features[size_t(f)].choice = among[0];
}

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
