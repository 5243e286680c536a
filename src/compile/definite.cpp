#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "compile/compile.h"

// The last k letters as digits of one number in one row.
namespace lrnn::compile {

void add_definite(Network& net, const DefinitePlan& plan, const std::vector<int64_t>& of_state,
                  const std::vector<int64_t>& labels) {
  Head head;
  head.query = {1};
  head.one_row = head.usual = true;
  head.start = {plan.start};
  head.value.resize(1);
  for (size_t x = 0; x < net.symbols.size(); ++x) {
    head.actions.push_back({net.symbols[x], {{{}, 1 - plan.leak}}});
    head.value[0].add(net.symbols[x], plan.digit[x]);
  }
  // The residual stream keeps steps of 2^-19: the gap between two intervals is made 2^13 of them.
  head.scale = std::exp2(std::ceil(std::log2(1 / (64 * plan.gap))));
  head.to = {net.add("register", kReadOffset)};
  const int64_t x = head.to[0];
  const double scale = head.scale;
  double most = std::abs(plan.start);
  for (const double d : plan.digit) most = std::max(most, std::abs(d));
  net.features[size_t(x)].most = scale * most;
  Layer& layer = net.layer(0);
  layer.heads.push_back(std::move(head));
  const auto& in = plan.intervals;
  const auto label = [&](size_t i) { return labels[size_t(of_state[size_t(in[i].state)])]; };
  net.features[size_t(label(0))].initial = 1;
  for (size_t i = 0; i + 1 < in.size(); ++i) {
    if (label(i) == label(i + 1)) continue;
    Gate gate{feature(x), 0.45 * plan.gap * scale, {{label(i), -1}, {label(i + 1), 1}}};
    gate.sum.constant = -scale * (in[i].high + in[i + 1].low) / 2;
    gate.highest = scale * most + gate.sum.constant;
    layer.gates.push_back(std::move(gate));
  }
}

}  // namespace lrnn::compile
