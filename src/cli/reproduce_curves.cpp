#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cli/reproduce_report.h"
#include "figures/draw.h"

// `lrnn reproduce`: training curves of every cell of a table, one line a seed.
namespace lrnn::cli {
namespace {

using experiments::CellOutcome;
using experiments::Curve;

constexpr double kHeight = 150;

figures::Point at(double x, double y) { return {x, y, y, y}; }

figures::Series seed_series(const experiments::Outcome& run) {
  figures::Series out{fmt::format("seed {}", run.seed), {}};
  for (const auto& [step, score] : run.training) out.points.push_back(at(step, score));
  return out;
}

// A mark for each seed; what is not finite keeps them apart.
figures::Series chosen_series(const CellOutcome& cell) {
  constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
  figures::Series out{"chosen on the validation set", {}};
  for (const auto& run : cell.runs)
    if (run.done && run.chosen) {
      out.points.push_back(at(double(run.chosen->step), run.chosen->score));
      out.points.push_back(at(kGap, kGap));
    }
  return out;
}

}  // namespace

std::string cell_curves(const CellOutcome& cell) {
  figures::LineChart out{.title = fmt::format("{}, {}", cell.cell.task, cell.cell.model),
                         .x_label = "step",
                         .y_label = cell.prefix ? "sequences all right" : "scaled accuracy",
                         .y = {{0, 1}},
                         .height = kHeight};
  double first = HUGE_VAL, last = 0;
  for (const auto& run : cell.runs) {
    if (run.training.empty()) continue;
    first = std::min(first, run.training.front().first);
    last = std::max(last, run.training.back().first);
    out.series.push_back(seed_series(run));
  }
  if (out.series.empty()) return "";
  if (const auto chosen = chosen_series(cell); !chosen.points.empty()) out.series.push_back(chosen);
  if (const double best = cell.cell.published.best; !std::isnan(best))
    out.series.push_back(
        {fmt::format("published: {:.3f}", best), {at(first, best), at(last, best)}});
  return draw(out);
}

}  // namespace lrnn::cli
