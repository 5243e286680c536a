#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/figures.h"
#include "figures/draw.h"

namespace lrnn::cli {
namespace {

// One line for every length that training ended at, and one label, which has room for all.
std::vector<figures::Marker> ends_of_training(const std::set<int64_t>& ends) {
  std::string all;
  for (const int64_t end : ends) all += fmt::format("{}{}", all.empty() ? "" : ", ", end);
  std::vector<figures::Marker> out;
  for (const int64_t end : ends)
    out.push_back({double(end), out.empty() ? "longest in training: " + all : ""});
  return out;
}

}  // namespace

std::string length_chart(const std::string& title, bool positions,
                         const std::vector<LengthCurve>& curves) {
  const bool prefixes = curves.front().task->score() == tasks::Score::kPrefix;
  int64_t longest = 0;
  std::set<int64_t> trained;
  std::vector<figures::Series> series;
  for (const auto& [name, bins, chance, style, task] : curves) {
    trained.insert(task->length(tasks::Split::kTrain).hi);
    series.push_back({name, {}, style});
    for (const auto& b : *bins) {
      longest = std::max(longest, b.hi);
      series.back().points.push_back(
          {double(b.lo + b.hi) / 2, experiments::scaled(b.tally.accuracy(), chance),
           experiments::scaled(b.low, chance), experiments::scaled(b.high, chance)});
    }
  }
  return draw(
      figures::LineChart{.title = title,
                         .x_label = positions ? "position" : "length of the sequence",
                         .y_label = prefixes ? "share of sequences" : "scaled accuracy",
                         .series = series,
                         .markers = ends_of_training(trained),
                         .y = {{0, 1}},
                         // Where training would otherwise be a sixteenth of the axis or less.
                         .log_x = longest > 16 * *trained.begin()});
}

}  // namespace lrnn::cli
