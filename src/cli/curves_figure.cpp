#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "cli/figures.h"
#include "experiments/metrics.h"
#include "figures/draw.h"

namespace lrnn::cli {
namespace {

using experiments::Curves;
using Lines = std::vector<nlohmann::ordered_json>;

// From this ratio of the largest to the smallest on, small losses would lie on the axis.
constexpr double kWideLoss = 30;

figures::Series series_of(const std::string& name, const Lines& lines, const char* key) {
  figures::Series out{name, {}};
  for (const auto& line : lines) {
    const double y = experiments::number_in(line, key);
    out.points.push_back({experiments::number_in(line, "step"), y, y, y});
  }
  return out;
}

std::string loss_panel(figures::LineChart chart) {
  double least = HUGE_VAL, most = 0;
  for (const auto& series : chart.series)
    for (const auto& p : series.points)
      if (std::isfinite(p.y)) least = std::min(least, p.y), most = std::max(most, p.y);
  chart.y_label = "loss";
  if (least > 0 && most >= kWideLoss * least) {
    chart.y_label = "log10 of the loss";
    for (auto& series : chart.series)
      for (auto& p : series.points) p.y = p.lo = p.hi = std::log10(p.y);
  }
  return draw(chart);
}

// Every panel begins at step 0, where its axis is.
const figures::Marker kBegin = {0, ""};

// Where the run was made longer or shorter.
std::vector<figures::Marker> markers_of(const Curves& run) {
  std::vector<figures::Marker> out = {kBegin};
  for (const auto& line : run.changes)
    if (line.contains("steps"))
      out.push_back(
          {experiments::number_in(line, "step"),
           fmt::format("{} to {}", line.value("kind", ""), line["steps"].value("to", int64_t(0)))});
  return out;
}

std::string figure_of_one(const Curves& run) {
  const auto markers = markers_of(run);
  auto accuracy = figures::LineChart{.title = "Accuracy",
                                     .x_label = "step",
                                     .y_label = "accuracy",
                                     .series = {series_of("training", run.train, "accuracy"),
                                                series_of("evaluation", run.eval, "accuracy")},
                                     .markers = markers,
                                     .y = {{0, 1}}};
  if (std::any_of(run.eval.begin(), run.eval.end(), [](const auto& line) {
        return line.contains("scaled") &&
               experiments::number_in(line, "scaled") != experiments::number_in(line, "accuracy");
      }))
    accuracy.series.push_back(series_of("evaluation, scaled: 0 is guessing", run.eval, "scaled"));
  return figures::stack({loss_panel({.title = "Loss",
                                     .x_label = "step",
                                     .series = {series_of("training", run.train, "loss"),
                                                series_of("evaluation", run.eval, "loss")},
                                     .markers = markers}),
                         draw(accuracy)},
                        "Loss and accuracy by step");
}

std::string figure_of_several(const std::vector<Curves>& runs) {
  const auto names = short_names(runs);
  const auto panel = [](const char* title, const char* y_label) {
    return figures::LineChart{
        .title = title, .x_label = "step", .y_label = y_label, .markers = {kBegin}};
  };
  auto loss = panel("Loss in training", ""), training = panel("Accuracy in training", "accuracy"),
       evaluation = panel("Evaluation", "scaled accuracy (0 is guessing)");
  const bool texts =
      std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.text; });
  training.y = evaluation.y = {0, 1};
  if (texts) evaluation.y = {}, evaluation.y_label = "loss";
  for (size_t i = 0; i < runs.size(); ++i) {
    loss.series.push_back(series_of(names[i], runs[i].train, "loss"));
    training.series.push_back(series_of(names[i], runs[i].train, "accuracy"));
    evaluation.series.push_back(series_of(names[i], runs[i].eval, texts ? "loss" : "scaled"));
  }
  return figures::stack({loss_panel(loss), draw(training), draw(evaluation)},
                        "Loss and accuracy by step");
}

}  // namespace

std::vector<std::string> short_names(const std::vector<Curves>& runs) {
  std::vector<std::string> out;
  for (const auto& run : runs)
    out.push_back(std::filesystem::weakly_canonical(run.folder).filename().string());
  if (std::set<std::string>(out.begin(), out.end()).size() < out.size())
    for (size_t i = 0; i < runs.size(); ++i) out[i] = runs[i].folder;
  return out;
}

std::string curves_figure(const std::vector<Curves>& runs) {
  return runs.size() == 1 ? figure_of_one(runs[0]) : figure_of_several(runs);
}

}  // namespace lrnn::cli
