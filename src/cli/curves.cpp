#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/figures.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text_positions.h"
#include "experiments/metrics.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using experiments::Curves;
using experiments::number_in;

struct CurvesArguments {
  std::vector<std::string> runs;
  std::string out, by = "step";
  PositionOptions position;
  bool json = false;
};

bool of_text(const std::vector<Curves>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.text; });
}

// Every point, in the order of the steps; what a line does not have is empty.
figures::Table csv(const std::vector<Curves>& runs) {
  std::vector<std::string> keys = {"loss",           "accuracy", "scaled",
                                   "token_accuracy", "lr",       "grad_norm"};
  if (of_text(runs)) keys = {"loss", "accuracy", "perplexity", "bits_per_byte", "lr", "grad_norm"};
  std::vector<std::string> head = {"run", "step", "kind"};
  head.insert(head.end(), keys.begin(), keys.end());
  figures::Table out(head);
  for (const auto& run : runs) {
    auto lines = run.train;
    lines.insert(lines.end(), run.eval.begin(), run.eval.end());
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
      return number_in(a, "step") < number_in(b, "step");
    });
    for (const auto& line : lines) {
      std::vector<std::string> row = {run.folder, line.value("step", Json(0)).dump(),
                                      line.value("kind", "")};
      for (const auto& key : keys)
        row.push_back(line.contains(key) && !line[key].is_null() ? line[key].dump() : "");
      out.row(row);
    }
  }
  return out;
}

double last(const std::vector<Json>& lines, const char* key) {
  return lines.empty() ? std::nan("") : number_in(lines.back(), key);
}

double last_step(const Curves& run) {
  return std::max(run.train.empty() ? 0 : last(run.train, "step"),
                  run.eval.empty() ? 0 : last(run.eval, "step"));
}

void print_texts(const std::vector<Curves>& runs) {
  figures::Table table({"run", "step", "of", "loss", "evaluation loss", "perplexity",
                        "bits per byte", "best loss", "at step"});
  const auto names = short_names(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& eval = runs[i].eval;
    const auto best = std::min_element(eval.begin(), eval.end(), [](const auto& a, const auto& b) {
      return number_in(a, "loss") < number_in(b, "loss");
    });
    table.row({names[i], decimals(last_step(runs[i]), 0), std::to_string(runs[i].steps),
               decimals(last(runs[i].train, "loss"), 4), decimals(last(eval, "loss"), 4),
               decimals(last(eval, "perplexity"), 2), decimals(last(eval, "bits_per_byte"), 4),
               best == eval.end() ? "–" : decimals(number_in(*best, "loss"), 4),
               best == eval.end() ? "–" : decimals(number_in(*best, "step"), 0)});
  }
  std::cout << table.text();
}

void print(const std::vector<Curves>& runs) {
  if (of_text(runs)) return print_texts(runs);
  figures::Table table({"run", "step", "of", "loss", "training accuracy", "evaluation accuracy",
                        "scaled", "best scaled", "at step"});
  const auto names = short_names(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto& train = runs[i].train;
    const auto& eval = runs[i].eval;
    const auto best = std::max_element(eval.begin(), eval.end(), [](const auto& a, const auto& b) {
      return number_in(a, "scaled") < number_in(b, "scaled");
    });
    table.row({names[i], decimals(last_step(runs[i]), 0), std::to_string(runs[i].steps),
               decimals(last(train, "loss"), 4), decimals(last(train, "accuracy"), 4),
               decimals(last(eval, "accuracy"), 4), decimals(last(eval, "scaled"), 4),
               best == eval.end() ? "–" : decimals(number_in(*best, "scaled"), 4),
               best == eval.end() ? "–" : decimals(number_in(*best, "step"), 0)});
  }
  std::cout << table.text();
}

int show_curves(const CurvesArguments& a) {
  std::vector<Curves> runs;
  for (const auto& folder : a.runs) runs.push_back(experiments::read_curves(folder));
  const std::string figure = a.out.empty() ? a.runs[0] + "/figures/curves.svg" : a.out;
  const auto table = std::filesystem::path(figure).replace_extension(".csv").string();
  check(table != figure, "-o names the figure, and ", figure, " is where its numbers would go");
  write_file(figure, curves_figure(runs));
  write_file(table, csv(runs).csv());
  if (a.json) {
    Json list = Json::array();
    for (const auto& run : runs)
      list.push_back({{"run", run.folder},
                      {"steps", run.steps},
                      {"train", run.train},
                      {"eval", run.eval},
                      {"changes", run.changes}});
    print_json({{"runs", list}, {"figure", figure}, {"csv", table}});
    return kDone;
  }
  print(runs);
  std::cout << "table: " << table << "\nfigure: " << figure << "\n";
  return kDone;
}

}  // namespace

Action curves(CLI::App& app) {
  auto a = std::make_shared<CurvesArguments>();
  add_run(app, a->runs, "a run folder, finished or not; several in one figure");
  app.add_option("--by", a->by, "step, or position: what a language model loses far into a text")
      ->check(CLI::IsMember({"step", "position"}))
      ->type_name("NAME");
  app.add_option("--domain", a->position.domain, "by position: of this domain alone")
      ->type_name("NAME");
  add_number(app, "--first", a->position.first, "by position: from there on (default: 64)",
             Least::kAboveZero);
  add_figure(app, a->out, "RUN/figures/curves.svg, or positions.svg");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Draws loss and accuracy by step, of training and of the evaluations on the way, from the "
      "run's\n"
      "metrics.jsonl; by position from what `lrnn eval RUN --data DIR --lengths N` left there,\n"
      "runs that differ in their seed alone as one line, with the lowest and highest around it.\n"
      "The numbers go into a CSV file beside the figure.\n\n"
      "Example:\n  lrnn curves runs/x\n  lrnn curves runs/x-seed42 runs/x-seed43 -o two.svg\n"
      "  lrnn curves runs/n1-seed* runs/n3-seed* --by position --domain python -o position.svg");
  return [a] {
    if (a->by == "step") return show_curves(*a);
    a->position.out = a->out, a->position.json = a->json;
    return show_positions(a->runs, a->position);
  };
}

}  // namespace lrnn::cli
