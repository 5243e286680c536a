#include <fmt/format.h>

#include <cmath>

#include "cli/reproduce_report.h"
#include "figures/draw.h"
#include "figures/page.h"

namespace lrnn::cli {
namespace {

using experiments::CellOutcome;
using experiments::Curve;

// `theirs`: read off a publication.
figures::Series as_series(const CellOutcome& cell, const Curve& curve, bool theirs) {
  const auto style = figures::style_of(cell.key);
  figures::Series out{cell.cell.model, {}, theirs ? figures::published(style) : style};
  // A curve of 513 prefixes needs no mark at each.
  const size_t every = std::max<size_t>(1, curve.size() / 64);
  for (size_t i = 0; i < curve.size(); ++i)
    if (i % every == 0 || i + 1 == curve.size())
      out.points.push_back({curve[i].first, curve[i].second, curve[i].second, curve[i].second});
  return out;
}

std::vector<std::string> tasks_of(const ReproduceReport& report) {
  std::vector<std::string> out;
  for (const auto& cell : report.cells)
    if (std::find(out.begin(), out.end(), cell.cell.task) == out.end())
      out.push_back(cell.cell.task);
  return out;
}

std::string by_length_chart(const std::string& task, const std::vector<const CellOutcome*>& cells,
                            bool ours) {
  const bool prefix = cells.front()->prefix;
  figures::LineChart out{
      .title = fmt::format("{}, {}", task, ours ? "ours" : "as published"),
      .x_label = prefix ? "length of the prefix" : "length of the sequence",
      .y_label = prefix ? "prefixes all right" : "scaled accuracy",
      .markers = {{double(cells.front()->trained_to),
                   fmt::format("longest in training: {}", cells.front()->trained_to)}},
      .y = {{0, 1}}};
  for (const auto* cell : cells) {
    const auto* middle = cell->middle();
    const Curve curve = !ours ? cell->cell.curve : middle ? middle->lengths : Curve{};
    if (!curve.empty()) out.series.push_back(as_series(*cell, curve, !ours));
  }
  return out.series.empty() ? "" : draw(out);
}

std::string training_chart(const std::string& task, const std::vector<const CellOutcome*>& cells) {
  figures::LineChart out{.title = task + ", while training",
                         .x_label = "step",
                         .y_label = cells.front()->text ? "loss on held-out windows"
                                    : cells.front()->prefix
                                        ? "sequences all right"
                                        : "scaled accuracy on the test's lengths"};
  if (!cells.front()->text) out.y = {{0, 1}};
  for (const auto* cell : cells)
    if (const auto* middle = cell->middle(); middle && !middle->training.empty())
      out.series.push_back(as_series(*cell, middle->training, false));
  return out.series.empty() ? "" : draw(out);
}

void add_task(figures::Page& page, const ReproduceReport& report, const std::string& task) {
  std::vector<const CellOutcome*> cells;
  for (const auto& cell : report.cells)
    if (cell.cell.task == task) cells.push_back(&cell);
  const auto warning = reproduce_warning(report.options);
  const std::string mark = warning.empty() ? "" : " " + warning + ".";
  const auto ours = by_length_chart(task, cells, true),
             theirs = by_length_chart(task, cells, false);
  const auto training = training_chart(task, cells);
  if (ours.empty() && theirs.empty() && training.empty()) return;
  page.heading(task);
  if (!ours.empty())
    page.figure(ours, "The seed whose score is the median, after its last step." + mark);
  if (!theirs.empty())
    page.figure(theirs, cells.front()->prefix
                            ? "Read off the published figure, to about 0.01."
                            : "Plot data of the published repository: one model per curve, not the "
                              "runs of the table. For comparing shapes.");
  if (!training.empty()) page.figure(training, "Evaluations on the way, of the same seeds." + mark);
  std::vector<std::string> moved;
  for (const auto* cell : cells)
    if (auto figure = cell_curves(*cell); !figure.empty()) moved.push_back(std::move(figure));
  if (!moved.empty())
    page.figure(figures::stack(moved, task + ", every seed by step"),
                "Every seed on the test set by step, with the evaluation that its validation set "
                "chooses." +
                    mark);
}

}  // namespace

std::string reproduce_page(const ReproduceReport& report) {
  const auto& suite = report.suite;
  figures::Page page(fmt::format("{}: published and reproduced", suite.name));
  page.paragraph(suite.about);
  const auto warning = reproduce_warning(report.options);
  if (!warning.empty()) page.paragraph(warning + ".");
  page.html(reproduce_table(report).html());
  page.note(fmt::format(
      "Score: {}; {}. MAD is the raw median absolute deviation.{} A remark says where the last "
      "step differs from the published "
      "median (or best, where no median is published) by more than both MADs and the sampling "
      "error of the test, one over the root of its number of sequences, together. A model has one "
      "colour on this page; curves in [0,1] are dashed, published ones thin with open marks. "
      "Published: {}.",
      suite.score, reproduce_columns(),
      report.options.lr_grid ? " The learning rate is the one of the grid with the best median."
                             : "",
      suite.source));
  for (const auto& failure : report.failures) page.paragraph("Failed: " + failure);
  for (const auto& task : tasks_of(report)) add_task(page, report, task);
  page.note(fmt::format("Made by lrnn {}.", LRNN_VERSION));
  return page.str();
}

}  // namespace lrnn::cli
