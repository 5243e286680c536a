#include <algorithm>
#include <map>

#include "cli/eval.h"

namespace lrnn::cli {
namespace {

using experiments::LengthBin;

// Every so manieth of `count` rows, and the last.
bool is_shown(size_t row, size_t count, size_t rows) {
  const size_t every = std::max<size_t>(1, (count + rows - 1) / rows);
  return row % every == 0 || row + 1 == count;
}

}  // namespace

figures::Table lengths_csv(const Measured& m) {
  figures::Table out({m.positions ? "position" : "length_low",
                      m.positions ? "position_high" : "length_high", "right", "count", "accuracy",
                      "low95", "high95", "scaled"});
  for (const auto& b : m.bins)
    out.row({std::to_string(b.lo), std::to_string(b.hi), std::to_string(b.tally.right),
             std::to_string(b.tally.count), decimals(b.tally.accuracy(), 6), decimals(b.low, 6),
             decimals(b.high, 6),
             decimals(experiments::scaled(b.tally.accuracy(), m.whole.chance), 6)});
  return out;
}

Json lengths_json(const Measured& m) {
  Json out = Json::array();
  for (const auto& b : m.bins)
    out.push_back({{"low", b.lo},
                   {"high", b.hi},
                   {"right", b.tally.right},
                   {"count", b.tally.count},
                   {"accuracy", b.tally.accuracy()},
                   {"interval", {b.low, b.high}},
                   {"scaled", experiments::scaled(b.tally.accuracy(), m.whole.chance)}});
  return out;
}

figures::Table lengths_table(const Measured& m) {
  figures::Table table({m.positions ? "position" : "length", "sequences", "accuracy",
                        "95 % interval", m.prefix ? "right" : "scaled"});
  for (size_t i = 0; i < m.bins.size(); ++i) {
    const auto& b = m.bins[i];
    if (!is_shown(i, m.bins.size(), kRowsForPeople)) continue;
    const double accuracy = b.tally.accuracy();
    table.row({label(b), std::to_string(b.tally.count), decimals(accuracy, 4),
               decimals(b.low, 4) + " – " + decimals(b.high, 4),
               m.prefix ? std::to_string(b.tally.right)
                        : decimals(experiments::scaled(accuracy, m.whole.chance), 4)});
  }
  return table;
}

figures::Table side_by_side(const std::vector<EvalCurve>& curves, size_t rows, int digits) {
  std::vector<std::string> head = {curves.front().measured->positions ? "position" : "length",
                                   "sequences"};
  std::map<std::pair<int64_t, int64_t>, std::vector<const LengthBin*>> found;
  for (size_t i = 0; i < curves.size(); ++i) {
    head.push_back(curves[i].name);
    for (const auto& bin : curves[i].measured->bins) {
      auto& row = found[{bin.lo, bin.hi}];
      row.resize(curves.size());
      row[i] = &bin;
    }
  }
  figures::Table out(head);
  size_t at = 0;
  for (const auto& [ends, bins] : found) {
    if (!is_shown(at++, found.size(), rows)) continue;
    const auto* first = *std::find_if(bins.begin(), bins.end(), [](auto* bin) { return bin; });
    std::vector<std::string> cells = {label(*first), std::to_string(first->tally.count)};
    for (size_t i = 0; i < bins.size(); ++i)
      cells.push_back(bins[i] ? decimals(experiments::scaled(bins[i]->tally.accuracy(),
                                                             curves[i].measured->chance()),
                                         digits)
                              : "–");
    out.row(cells);
  }
  return out;
}

}  // namespace lrnn::cli
