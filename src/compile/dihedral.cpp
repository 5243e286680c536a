#include <algorithm>

#include "base/error.h"
#include "compile/compile.h"

// Rotations and reflections of the plane with one reflection per token: the first layer says
// whether an even or odd number of rotations was read, the second reflects accordingly.
namespace lrnn::compile {

namespace {

// The sign of layer 1 as two literals: is e = 0, is e = 1.
std::array<Form, 2> parity_layer(Network& net, const DihedralPlan& plan) {
  Head head;
  head.query = {1};
  head.one_row = true;
  head.start = {1};
  for (size_t x = 0; x < net.symbols.size(); ++x)
    if (plan.letters[x] == DihedralPlan::kRotation)
      head.actions.push_back({net.symbols[x], {{{}, 2}}});
  head.to = {net.add("sign", kReadOffset)};
  const int64_t sign = head.to[0];
  net.layer(0).heads.push_back(std::move(head));
  return {Form{{{sign, 0.5}}, 0.5}, Form{{{sign, -0.5}}, 0.5}};
}

// The plane, once for each of its two coordinates: a head reads one number per column.
std::array<int64_t, 2> plane_layer(Network& net, const DihedralPlan& plan,
                                   const std::array<Form, 2>& parity) {
  std::vector<Action> actions;
  for (size_t x = 0; x < net.symbols.size(); ++x) {
    if (plan.letters[x] == DihedralPlan::kStay) continue;
    for (size_t e = 0; e < 2; ++e) {
      const int64_t f = net.add(cat("letter ", x, " with parity ", e), 0);
      net.layer(0).gates.push_back(all_of({feature(net.symbols[x]), parity[e]}, {{f, 1}}));
      const auto& step = plan.steps[x][e];
      actions.push_back({f, {{step.root, step.beta}}});
    }
  }
  std::vector<int64_t> letters;
  for (const auto& a : actions) letters.push_back(a.feature);
  if (!letters.empty()) net.choose(letters);
  std::array<int64_t, 2> out{};
  for (size_t i = 0; i < 2; ++i) {
    Head head;
    head.rows = 2;
    head.query = {i == 0 ? 1. : 0., i == 1 ? 1. : 0.};
    head.start = {plan.start[0], plan.start[1]};
    head.actions = actions;
    head.scale = kReadScale;
    head.to = {out[i] = net.add(cat("plane ", i + 1), kReadOffset)};
    net.features[size_t(out[i])].most = kReadScale;
    net.layer(1).heads.push_back(std::move(head));
  }
  return out;
}

}  // namespace

void add_dihedral(Network& net, const DihedralPlan& plan, const std::vector<int64_t>& of_state,
                  const std::vector<int64_t>& labels) {
  const auto parity = parity_layer(net, plan);
  const auto plane = plane_layer(net, plan, parity);
  const int64_t family = net.new_family();
  for (const auto& p : plan.points) {
    double gap = 1;
    bool again = false;  // two elements may lead to one point
    for (const auto& other : plan.points) {
      const double apart = 1 - p.at[0] * other.at[0] - p.at[1] * other.at[1];
      if (other.e != p.e || &other == &p) continue;
      if (apart < 1e-9)
        again |= &other < &p;
      else
        gap = std::min(gap, apart);
    }
    if (again) continue;
    const double unit = kReadScale * gap;
    Form near{{{plane[0], p.at[0] / unit}, {plane[1], p.at[1] / unit}}, 1 - kReadScale / unit};
    net.layer(1).gates.push_back(
        all_of({near, parity[size_t(p.e)]}, {{labels[size_t(of_state[size_t(p.state)])], 1}}));
    net.layer(1).gates.back().family = family;
    net.layer(1).gates.back().member = int64_t(net.layer(1).gates.size());
  }
}

}  // namespace lrnn::compile
