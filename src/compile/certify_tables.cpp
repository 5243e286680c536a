#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "compile/certificate.h"
#include "compile/parts.h"
#include "ops/torch.h"

// The look-up tables: every entry, at the corners of what the flip-flops can hold.
namespace lrnn::compile {
namespace {

using automata::LevelAction;
using torch::Tensor;
using Level = ComponentNet::Level;

// Cases gathered until there are enough for one product.
class Cases {
 public:
  Cases(const Parts& parts, const Network& net, int64_t layer, Certificate::Part& out)
      : parts_(parts), net_(net), layer_(layer), out_(out), base_(parts.base(1)) {}
  ~Cases() = default;

  // `fill` writes a residual stream; afterwards the features `want` must have these values.
  template <class Fill> void add(Fill fill, std::vector<std::pair<int64_t, double>> want) {
    rows_.push_back(base_.clone());
    fill(rows_.back().template data_ptr<double>());
    want_.push_back(std::move(want));
    if (rows_.size() >= 1024) flush();
  }
  void flush() {
    if (rows_.empty()) return;
    const Tensor y = parts_.look_up(layer_, torch::cat(rows_)).to(torch::kFloat64).contiguous();
    const double* at = y.data_ptr<double>();
    for (size_t i = 0; i < rows_.size(); ++i)
      for (const auto& [f, value] : want_[i])
        // A closed gate lets 1e-38 through, which the next norm rounds to 0.
        if (std::abs(at[int64_t(i) * parts_.width() + f] - net_.features[size_t(f)].offset -
                     value) > 1e-30 &&
            out_.wrong.empty())
          out_.wrong = cat("layer ", layer_ + 1, ": '", net_.features[size_t(f)].name, "' is ",
                           at[int64_t(i) * parts_.width() + f] - net_.features[size_t(f)].offset,
                           ", not ", value);
    out_.cases += int64_t(rows_.size());
    rows_.clear(), want_.clear();
  }

 private:
  const Parts& parts_;
  const Network& net_;
  int64_t layer_;
  Certificate::Part& out_;
  Tensor base_;
  std::vector<Tensor> rows_;
  std::vector<std::vector<std::pair<int64_t, double>>> want_;
};

// Every triple with every element: where tiles go, and what a reset writes.
void check_group_tables(const Compiled& c, const ComponentNet& part, int64_t d, const Parts& parts,
                        Certificate::Part& out) {
  const auto& level = part.levels()[size_t(d - 1)];
  const auto& cascade = *part.component().cascade;
  Cases cases(parts, c.built->network, level.layer - 1, out);
  for (const auto& [type, reading] : level.readings) {
    const auto& goes = level.goes.at(type);
    for (const auto& [triple, feature] : level.act) {
      const auto action = cascade.action(d, triple);
      const bool mine = action.kind == LevelAction::kReset && action.type == type;
      for (const int64_t e : reading.elements()) {
        std::vector<std::pair<int64_t, double>> want;
        for (size_t y = 0; y < goes.size(); ++y)
          for (size_t r = 0; r < goes.size(); ++r)
            want.emplace_back(goes[y][r], reading.tile(e, int64_t(y)) == int64_t(r));
        const bool silent = action.kind != LevelAction::kReset || !level.goes.contains(action.type);
        for (size_t y = 0; y < level.xw.size() && (mine || silent); ++y)
          want.emplace_back(
              level.xw[y], mine && y < goes.size() && reading.tile(e, int64_t(y)) == action.target);
        cases.add(
            [&, &reading = reading, f = feature](double* x) {
              for (const auto& [other, r] : level.readings) r.hold(r.elements()[0], x);
              reading.hold(e, x);
              x[f] += 1;
            },
            std::move(want));
      }
    }
  }
  cases.flush();
}

// Elements that take every y to every r that it can go to.
std::vector<int64_t> covering(const GroupReading& g, int64_t tiles) {
  std::set<std::pair<int64_t, int64_t>> seen;
  std::vector<int64_t> out;
  for (const int64_t e : g.elements()) {
    bool fresh = false;
    for (int64_t y = 0; y < tiles; ++y) fresh |= seen.emplace(y, g.tile(e, y)).second;
    if (fresh) out.push_back(e);
  }
  return out;
}

// What a flip-flop holds after a letter: y itself, with what the writes before left of others. A
// write of strength b leaves 1 - b of what was there; the strengths are those of the real weights,
// and all values lie between the ones listed, which take the least and the most of them.
struct Register {
  int64_t y, was;
  std::vector<double> values;
};
std::vector<Register> registers(int64_t tiles, bool written, std::pair<double, double> strengths) {
  const auto [least, most] = strengths;
  std::vector<Register> out;
  for (const double last : {least, most})
    for (const double before : {least, most}) {
      for (int64_t y = 0; y < tiles; ++y)
        for (int64_t z = 0; z < tiles; ++z)
          for (int64_t w = 0; w < (written ? tiles : 1); ++w) {
            std::vector<double> v(size_t(tiles), 0);
            v[size_t(y)] += last;
            v[size_t(z)] += (1 - last) * (written ? before : 1);
            if (written) v[size_t(w)] += (1 - last) * (1 - before);
            out.push_back({y, written ? z : y, v});
          }
      if (least == most) return out;
    }
  return out;
}

// What a reset writes: the value that the group takes to the target, e being where it is; the
// groups of other classes are where they began.
int64_t written(const Level& level, const LevelAction& action, const GroupReading* g, int64_t e) {
  if (!g || !level.goes.contains(action.type)) return action.target;
  for (int64_t y = 0; y < int64_t(level.goes.at(action.type).size()); ++y)
    if (g->tile(e, y) == action.target) return y;
  return -1;
}

void check_step(const Compiled& c, const ComponentNet& part, int64_t d, const Parts& parts,
                Certificate::Part& out) {
  const auto& level = part.levels()[size_t(d - 1)];
  const auto& next = part.levels()[size_t(d)].act;
  const auto& cascade = *part.component().cascade;
  const Network& net = c.built->network;
  Cases cases(parts, net, level.layer, out);
  const auto strengths = write_strengths(c, parts, level.layer, level.x);
  for (const auto& [t, feature] : level.act) {
    const auto action = cascade.action(d, t);
    const auto &before = cascade.sets()[size_t(t.before)], &after = cascade.sets()[size_t(t.after)];
    const bool reset = action.kind == LevelAction::kReset;
    const bool was_here = before.depth == d, is_here = after.depth == d;
    const int64_t type = was_here ? before.type : is_here ? after.type : -1;
    const GroupReading* g =
        type >= 0 && level.readings.contains(type) ? &level.readings.at(type) : nullptr;
    const int64_t tiles = type < 0 ? 1 : cascade.classes()[size_t(type)].tiles;
    for (const int64_t e : g ? covering(*g, tiles) : std::vector<int64_t>{0})
      for (const auto& r : registers(int64_t(level.x.size()), reset, strengths)) {
        if (r.was >= tiles && was_here) continue;
        if (!reset && r.y >= tiles) continue;
        if (reset && r.y != written(level, action, action.type == type ? g : nullptr, e)) continue;
        const auto to = [&](int64_t y) { return g ? g->tile(e, y) : y; };
        Cascade::Triple want{t.before, t.after, t.symbol};
        if (was_here) {
          int64_t old = to(r.was);
          if (action.kind == LevelAction::kPermutation)
            old = automata::inverse(action.tiles)[size_t(old)];
          want.before = before.tiles[size_t(old)];
        }
        if (is_here) want.after = after.tiles[size_t(reset ? action.target : to(r.y))];
        if (!next.contains(want)) continue;  // no word leads there
        std::vector<std::pair<int64_t, double>> features;
        for (const auto& [triple, f] : next) features.emplace_back(f, triple == want);
        cases.add(
            [&, f = feature](double* x) {
              x[f] += 1;
              for (size_t y = 0; y < level.x.size(); ++y) x[level.x[y]] += r.values[y];
              for (const auto& [other, goes] : level.goes)
                for (size_t y = 0; y < goes.size(); ++y)
                  for (size_t i = 0; i < goes.size(); ++i) {
                    const int64_t image = other == type && g ? g->tile(e, int64_t(y)) : int64_t(y);
                    const int64_t there = goes[y][i];
                    x[there] = net.features[size_t(there)].offset + double(image == int64_t(i));
                  }
            },
            std::move(features));
      }
  }
  cases.flush();
}

}  // namespace

Certificate::Part certify_tables(const Compiled& c, const Parts& parts) {
  Certificate::Part out{"tables", 0, ""};
  for (const auto& part : c.built->components) {
    const auto levels = int64_t(part->levels().size());
    for (int64_t d = 1; d <= levels; ++d) {
      if (part->component().group_only) continue;
      if (part->levels()[size_t(d - 1)].group) check_group_tables(c, *part, d, parts, out);
      if (d < levels) check_step(c, *part, d, parts, out);
    }
  }
  return out;
}

namespace {

// A residual stream in which one component is in a known block.
struct Placed {
  std::vector<std::pair<int64_t, double>> values;  // features set to offset + value
  int64_t block;
};

std::vector<Placed> placements(const ComponentNet& part, const Network& net) {
  std::vector<Placed> out;
  const auto& cascade = *part.component().cascade;
  const auto levels = int64_t(part.levels().size());
  if (levels == 0) return {{{}, 0}};
  const auto& level = part.levels()[size_t(levels - 1)];
  const auto& sets = cascade.sets();
  if (part.component().group_only) {
    const auto& g = level.readings.begin()->second;
    const int64_t start = cascade.coordinates(part.component().automaton.start)[0];
    const auto& tiles = sets[size_t(cascade.all_states())].tiles;
    for (const int64_t e : g.elements()) {
      std::vector<double> x(net.features.size(), NAN);
      g.hold(e, x.data());
      Placed p{{}, sets[size_t(tiles[size_t(g.tile(e, start))])].state};
      for (size_t f = 0; f < x.size(); ++f)
        if (!std::isnan(x[f])) p.values.emplace_back(f, x[f] - net.features[f].offset);
      out.push_back(std::move(p));
    }
    return out;
  }
  for (const auto& [t, feature] : level.act) {
    // The letter itself does not matter here, and all components read the same one.
    if (levels == 1 && t.symbol != 0) continue;
    const auto& after = sets[size_t(t.after)];
    if (after.depth != levels) {
      out.push_back({{{feature, 1}}, after.state});
      continue;
    }
    const auto goes = level.goes.find(after.type);
    const int64_t tiles = cascade.classes()[size_t(after.type)].tiles;
    for (int64_t y = 0; y < tiles; ++y)
      for (int64_t r = 0; r < tiles; ++r) {
        if (goes == level.goes.end() && r != y) continue;
        Placed p{{{feature, 1}, {level.x[size_t(y)], 1}},
                 sets[size_t(after.tiles[size_t(r)])].state};
        // Only tile y matters; the row of the table is replaced.
        if (goes != level.goes.end())
          for (int64_t i = 0; i < tiles; ++i)
            p.values.emplace_back(goes->second[size_t(y)][size_t(i)], i == r);
        out.push_back(std::move(p));
      }
  }
  return out;
}

}  // namespace

// What is named at the end, for every combination of blocks.
Certificate::Part certify_answers(const Compiled& c, const Parts& parts) {
  Certificate::Part out{"answers", 0, ""};
  const Network& net = c.built->network;
  std::vector<std::vector<Placed>> all;
  for (const auto& part : c.built->components) all.push_back(placements(*part, net));
  if (all.empty()) return out;
  std::vector<size_t> pick(all.size(), 0);
  std::vector<Tensor> rows;
  std::vector<int64_t> want;
  const Tensor base = parts.base(1);
  const auto flush = [&] {
    if (rows.empty()) return;
    const Tensor x = parts.look_up(int64_t(net.layers.size()) - 1, torch::cat(rows));
    if (!(parts.answer(x) == torch::tensor(want)).all().item<bool>())
      out.wrong = "a state is named wrongly";
    out.cases += int64_t(rows.size());
    rows.clear(), want.clear();
  };
  for (bool more = true; more;) {
    std::vector<int64_t> blocks;
    Tensor row = base.clone();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& placed = all[i][pick[i]];
      blocks.push_back(placed.block);
      for (const auto& [f, v] : placed.values)
        row.data_ptr<double>()[f] = net.features[size_t(f)].offset + v;
    }
    if (const int64_t state = c.plan.state_of(blocks); state >= 0) {
      rows.push_back(row);
      want.push_back(c.labels.of_state[size_t(state)]);
      if (rows.size() >= 1024) flush();
    }
    size_t i = 0;
    while (i < pick.size() && ++pick[i] == all[i].size()) pick[i++] = 0;
    more = i < pick.size();
  }
  flush();
  return out;
}

}  // namespace lrnn::compile
