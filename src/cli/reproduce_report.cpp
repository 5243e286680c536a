#include "cli/reproduce_report.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

namespace lrnn::cli {
namespace {

using experiments::CellOutcome;

constexpr int kRate = 8;  // the column of the learning rate, where there is a choice

std::string three(double value) { return std::isnan(value) ? "–" : fmt::format("{:.3f}", value); }

std::string with_mad(const experiments::Summary& s) {
  if (std::isnan(s.median)) return "–";
  return fmt::format("{:.3f} ± {:.3f}", s.median, std::isnan(s.mad) ? 0 : s.mad);
}

int64_t seeds_done(const CellOutcome& cell) {
  int64_t out = 0;
  for (const auto& run : cell.runs) out += run.done;
  return out;
}

// Missing numbers are null.
Json number_or_null(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

// Null of runs without a validation set.
Json chosen_json(const experiments::Outcome& run) {
  if (!run.chosen) return nullptr;
  return {{"step", run.chosen->step},
          {"validation", number_or_null(run.chosen->validation)},
          {"score", number_or_null(run.chosen->score)}};
}

// Best over the seeds of what was chosen. Runs of earlier versions had nothing to choose by.
std::string chosen_text(const CellOutcome& cell) {
  return seeds_done(cell) && std::isnan(cell.chosen.best) ? "no validation"
                                                          : three(cell.chosen.best);
}

Json cell_json(const CellOutcome& cell) {
  Json runs = Json::array();
  for (const auto& run : cell.runs)
    runs.push_back({{"seed", run.seed},
                    {"done", run.done},
                    {"score", number_or_null(run.score)},
                    {"chosen", chosen_json(run)},
                    {"seconds", run.seconds},
                    {"folder", run.folder},
                    {"lengths", run.lengths},
                    {"training", run.training},
                    {"validation", run.validation}});
  return {{"task", cell.cell.task},
          {"model", cell.cell.model},
          {"config", cell.cell.config},
          {"published", summary_json(cell.cell.published)},
          {"published_in_words", cell.cell.says},
          {"published_curve", cell.cell.curve},
          {"ours", summary_json(cell.ours)},
          {"chosen", summary_json(cell.chosen)},
          {"lr", cell.lr},
          {"seeds", seeds_done(cell)},
          {"seconds", cell.seconds},
          {"sequences", cell.sequences()},
          {"spread", experiments::spread(cell)},
          {"remark", experiments::remark(cell)},
          {"runs", runs}};
}

}  // namespace

Json summary_json(const experiments::Summary& s) {
  return {{"best", number_or_null(s.best)},
          {"median", number_or_null(s.median)},
          {"mad", number_or_null(s.mad)}};
}

std::string reproduce_warning(const experiments::PlanOptions& options) {
  std::string out;
  if (options.scale != 1)
    out = fmt::format("SHORTENED: {:g} of the published steps, so the numbers are not comparable",
                      options.scale);
  std::string keys;
  for (const auto& key : options.keys) keys += (keys.empty() ? "" : " ") + key;
  if (!keys.empty()) out += (out.empty() ? "" : "; ") + ("CHANGED: " + keys);
  return out;
}

std::string reproduce_columns() {
  return "last step: the weights that training ends with; chosen: the evaluation that is best on a "
         "validation set of its own, scored on the test; best and median over seeds";
}

figures::Table reproduce_table(const ReproduceReport& report) {
  const bool grid = report.options.lr_grid;
  std::vector<std::string> head = {"task",           "model",
                                   "published best", "published median ± MAD",
                                   "last step best", "last step median ± MAD",
                                   "chosen best",    "chosen median ± MAD",
                                   "seeds",          "wall time",
                                   "remark"};
  if (grid) head.insert(head.begin() + kRate, "lr");
  figures::Table table(head);
  for (const auto& cell : report.cells) {
    const auto& published = cell.cell.published;
    std::string remark = experiments::remark(cell);
    const auto prepend = [&](const char* word) {
      remark = word + (remark.empty() ? "" : ", " + remark);
    };
    if (!report.options.keys.empty()) prepend("changed");
    if (report.options.scale != 1) prepend("shortened");
    std::vector<std::string> row = {cell.cell.task,
                                    cell.cell.model,
                                    std::isnan(published.best) && !cell.cell.says.empty()
                                        ? cell.cell.says
                                        : three(published.best),
                                    with_mad(published),
                                    three(cell.ours.best),
                                    with_mad(cell.ours),
                                    chosen_text(cell),
                                    with_mad(cell.chosen),
                                    fmt::format("{} of {}", seeds_done(cell), report.options.seeds),
                                    cell.seconds > 0 ? duration(cell.seconds) : "–",
                                    remark};
    if (grid)
      row.insert(row.begin() + kRate, seeds_done(cell) ? fmt::format("{:g}", cell.lr) : "–");
    table.row(row);
  }
  return table;
}

std::string reproduce_markdown(const ReproduceReport& report) {
  const auto& suite = report.suite;
  std::string out = fmt::format("# {}\n\n{}\n\nScore: {}. Published: {}.\n\n", suite.name,
                                suite.about, suite.score, suite.source);
  if (const auto warning = reproduce_warning(report.options); !warning.empty())
    out += "**" + warning + "**\n\n";
  out += reproduce_table(report).markdown();
  out += "\nHere " + reproduce_columns() + ". How each run moved: `curves/`.\n";
  if (!report.failures.empty()) out += "\nRuns that failed:\n\n";
  for (const auto& failure : report.failures) out += "* " + failure + "\n";
  return out;
}

Json reproduce_json(const ReproduceReport& report) {
  Json cells = Json::array();
  for (const auto& cell : report.cells) cells.push_back(cell_json(cell));
  return {{"suite", report.suite.name},
          {"source", report.suite.source},
          {"score", report.suite.score},
          {"lrnn", LRNN_VERSION},
          {"scale", report.options.scale},
          {"shortened", report.options.scale != 1},
          {"keys", report.options.keys},
          {"lr_grid", report.options.lr_grid},
          {"seeds", report.options.seeds},
          {"warning", reproduce_warning(report.options)},
          {"cells", cells},
          {"failures", report.failures},
          {"warnings", report.warnings}};
}

std::string write_reproduce_report(const ReproduceReport& report) {
  const auto folder = experiments::suite_folder(report.suite, report.options);
  write_file(folder + "/table.md", reproduce_markdown(report));
  // A CSV has no place for a heading, so each line says whether its run was shortened.
  write_file(folder + "/table.csv", reproduce_table(report).csv());
  write_file(folder + "/table.json", reproduce_json(report).dump(1) + "\n");
  for (const auto& cell : report.cells)
    if (const auto figure = cell_curves(cell); !figure.empty())
      write_file(fmt::format("{}/curves/{}.svg", folder,
                             std::filesystem::path(cell.cell.config).filename().string()),
                 figure);
  write_file(folder + "/report.html", reproduce_page(report));
  return folder + "/report.html";
}

}  // namespace lrnn::cli
