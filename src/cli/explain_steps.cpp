#include <cmath>
#include <map>

#include "cli/explain.h"
#include "figures/svg.h"
#include "ops/torch.h"

namespace lrnn::cli {
namespace {

using compile::Compiled;

constexpr size_t kMostSpots = 4000;

// The automaton alone; false when there are more than `most` places.
bool walk(const Spots& spots, int64_t symbols, size_t most, Stepping& out) {
  std::map<Spot, int64_t> number = {{spots.start(), 0}};
  std::vector<Spot> order = {spots.start()};
  out.places.clear();
  for (size_t i = 0; i < order.size() && order.size() <= most; ++i) {
    Stepping::Place place{order[i].state, Spots::text(order[i]), {}, {}};
    for (int64_t x = 0; x < symbols; ++x) {
      const Spot to = spots.step(order[i], x);
      const auto [at, fresh] = number.emplace(to, int64_t(order.size()));
      if (fresh) order.push_back(to);
      place.next.push_back(at->second);
    }
    out.places.push_back(std::move(place));
  }
  return order.size() <= most;
}

Json short_numbers(const std::vector<double>& x) {
  Json out = Json::array();
  for (const double v : x) {
    const double rounded = std::round(v * 1e9) / 1e9;
    if (rounded == std::trunc(rounded))
      out.push_back(int64_t(rounded));
    else
      out.push_back(rounded);
  }
  return out;
}

Json head_json(const Stepping::Head& head) {
  Json actions = Json::array();
  for (const auto& act : head.actions)
    actions.push_back({{"a", short_numbers(act.a)}, {"b", short_numbers(act.b)}});
  return {{"name", cat("Layer ", head.layer, ", head ", head.head)},
          {"about", head.about},
          {"rows", head.rows},
          {"cols", head.cols},
          {"start", short_numbers(head.start)},
          {"query", short_numbers(head.query)},
          {"actions", actions}};
}

}  // namespace

Stepping stepping(const Compiled& c, model::Model& model) {
  auto out = Follower(c, model).follow();
  if (out.without.empty()) return out;
  const int64_t symbols = c.subject.automaton.symbols;
  out.heads.clear(), out.moves.clear();
  if (!walk(Spots(c, true), symbols, kMostSpots, out))
    walk(Spots(c, false), symbols, size_t(c.subject.automaton.states), out);
  return out;
}

Json to_json(const Stepping& s, const Compiled& c) {
  const auto& a = c.subject.automaton;
  const auto& group = c.subject.group;
  Json symbols = Json::array(), ids = Json::array(), states = Json::array(),
       answers = Json::array(), next = Json::array(), state = Json::array(),
       coordinates = Json::array(), move = Json::array(), heads = Json::array();
  bool characters = true;
  for (int64_t x = 0; x < a.symbols; ++x) {
    symbols.push_back(a.symbol_name(x));
    if (group) ids.push_back(group->find(a.symbol_name(x)));
    characters &= figures::letters(a.symbol_name(x)) == 1;
  }
  for (int64_t q = 0; q < a.states; ++q) {
    states.push_back(a.state_name(q));
    answers.push_back(c.labels.names[size_t(c.labels.of_state[size_t(q)])]);
  }
  for (const auto& place : s.places) {
    state.push_back(place.state), coordinates.push_back(place.coordinates);
    next.push_back(place.next);
    if (s.without.empty()) move.push_back(place.moves);
  }
  for (const auto& head : s.heads) heads.push_back(head_json(head));
  return {{"symbols", symbols},       {"ids", ids},
          {"characters", characters}, {"states", states},
          {"answers", answers},       {"next", next},
          {"state", state},           {"coordinates", coordinates},
          {"heads", heads},           {"move", move},
          {"moves", s.moves}};
}

}  // namespace lrnn::cli
