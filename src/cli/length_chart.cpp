#include "cli/length_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/line_chart.h"

namespace lrnn::cli {

std::string length_chart(const std::string& title, const tasks::Task& task,
                         const std::vector<LengthCurve>& curves) {
  const bool prefixes = task.score() == tasks::Score::kPrefix;
  const int64_t trained = task.length(tasks::Split::kTrain).hi;
  int64_t longest = 0;
  std::vector<figures::Series> series;
  for (const auto& [name, bins, chance] : curves) {
    series.push_back({name, {}});
    for (const auto& b : *bins) {
      longest = std::max(longest, b.hi);
      series.back().points.push_back(
          {double(b.lo + b.hi) / 2, experiments::scaled(b.tally.accuracy(), chance),
           experiments::scaled(b.low, chance), experiments::scaled(b.high, chance)});
    }
  }
  return draw(figures::LineChart{
      .title = title,
      .x_label = prefixes ? "position" : "length of the sequence",
      .y_label = prefixes ? "share of sequences" : "scaled accuracy",
      .series = series,
      .markers = {{double(trained), fmt::format("longest in training: {}", trained)}},
      .y = {{0, 1}},
      // Where training would otherwise be a sixteenth of the axis or less.
      .log_x = longest > 16 * trained});
}

}  // namespace lrnn::cli
