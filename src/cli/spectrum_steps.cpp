#include "cli/spectrum_steps.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/figures.h"
#include "cli/find.h"
#include "cli/output.h"
#include "figures/draw.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using experiments::HeadLook;
using experiments::StepLook;
using experiments::ThroughSteps;

const HeadLook& decisive(const ThroughSteps& all, const StepLook& look) {
  return look.heads.at(std::min(all.decisive, look.heads.size() - 1));
}

double real_at(const HeadLook& head, int64_t token) {
  const auto found = head.by_token.find(token);
  return found == head.by_token.end() ? std::nan("") : found->second.real();
}

std::vector<int64_t> shown_letters(const tasks::Task& task) {
  auto out = task.letters();
  if (out.size() > kMostLetters) out.resize(kMostLetters);
  return out;
}

// `exact`: for programs, with every digit.
figures::Table table_of(const ThroughSteps& all, const tasks::Task& task, bool exact) {
  const auto letters = shown_letters(task);
  std::vector<std::string> head = {"step"};
  for (const int64_t token : letters) head.push_back("at " + task.word(token));
  head.insert(head.end(), {"keys alike", "kept a token"});
  for (const auto& at : all.looks.front().lengths) {
    head.push_back(fmt::format("error at {}", at.length));
    head.push_back(fmt::format("margin at {}", at.length));
    if (exact) head.push_back(fmt::format("weakest at {}", at.length));
  }
  figures::Table out(head);
  const auto number = [&](double x, int digits) {
    return exact ? fmt::format("{}", x) : decimals(x, digits);
  };
  for (const auto& look : all.looks) {
    const auto& of = decisive(all, look);
    std::vector<std::string> row = {std::to_string(look.step)};
    for (const int64_t token : letters) row.push_back(number(real_at(of, token), 4));
    row.push_back(number(of.alike, 4)), row.push_back(number(of.kept, 4));
    for (const auto& at : look.lengths) {
      row.push_back(number(at.error(), 3)), row.push_back(number(at.margin, 2));
      if (exact) row.push_back(number(at.weakest, 2));
    }
    out.row(row);
  }
  return out;
}

template <class Y>
figures::Series series(const std::string& name, const ThroughSteps& all, const Y& y) {
  figures::Series out{name, {}};
  for (const auto& look : all.looks) {
    const double at = y(look);
    out.points.push_back({double(look.step), at, at, at});
  }
  return out;
}

std::string figure_of(const ThroughSteps& all, const tasks::Task& task) {
  const auto& named = decisive(all, all.looks.back());
  const auto panel = [](const std::string& title, const char* y) {
    return figures::LineChart{.title = title, .x_label = "step", .y_label = y, .height = 180};
  };
  auto head = panel(fmt::format("Layer {}, head {}", named.layer, named.head), "eigenvalue");
  for (const int64_t token : shown_letters(task))
    head.series.push_back(series("at " + task.word(token), all, [&](const StepLook& look) {
      return real_at(decisive(all, look), token);
    }));
  auto keys = panel("The same head: keys of reflections alike, kept a token", "share");
  keys.series = {
      series("keys alike", all, [&](const StepLook& look) { return decisive(all, look).alike; }),
      series("kept a token", all, [&](const StepLook& look) { return decisive(all, look).kept; })};
  auto margin = panel("Margin of the answer, median", "logits"),
       error = panel("Words wrong", "share");
  error.y = {0, 1};
  for (size_t i = 0; i < all.looks.front().lengths.size(); ++i) {
    const auto name = fmt::format("length {}", all.looks.front().lengths[i].length);
    margin.series.push_back(
        series(name, all, [&](const StepLook& look) { return look.lengths[i].margin; }));
    error.series.push_back(
        series(name, all, [&](const StepLook& look) { return look.lengths[i].error(); }));
  }
  return figures::stack({draw(error), draw(margin), draw(head), draw(keys)},
                        "Through the steps of a run");
}

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json look_json(const ThroughSteps& all, const StepLook& look, const tasks::Task& task) {
  Json heads = Json::array(), lengths = Json::array();
  for (size_t i = 0; i < look.heads.size(); ++i) {
    const auto& head = look.heads[i];
    Json by_token = Json::object();
    for (const auto& [token, z] : head.by_token) by_token[task.word(token)] = {z.real(), z.imag()};
    heads.push_back({{"layer", head.layer},
                     {"head", head.head},
                     {"decisive", i == all.decisive},
                     {"by_token", by_token},
                     {"alike", number(head.alike)},
                     {"kept", number(head.kept)}});
  }
  for (const auto& at : look.lengths)
    lengths.push_back({{"length", at.length},
                       {"words", at.words},
                       {"wrong", at.wrong},
                       {"error", at.error()},
                       {"margin", number(at.margin)},
                       {"weakest", number(at.weakest)}});
  return {{"step", look.step}, {"heads", heads}, {"lengths", lengths}};
}

}  // namespace

int show_steps(const std::string& name, const experiments::StepOptions& options,
               const std::string& out, bool json) {
  const auto run = find_run(name);
  const auto opened = open_run(run);
  const auto all = experiments::through_steps(run, options);
  const auto& task = *opened.task;
  const std::string figure = out.empty() ? run + "/figures/steps.svg" : out;
  const auto table = std::filesystem::path(figure).replace_extension(".csv").string();
  check(table != figure, "-o names the figure, and ", figure, " is where its numbers would go");
  write_file(figure, figure_of(all, task));
  write_file(table, table_of(all, task, true).csv());
  if (json) {
    Json looks = Json::array();
    for (const auto& look : all.looks) looks.push_back(look_json(all, look, task));
    print_json({{"run", run},
                {"steps", looks},
                {"damaged", all.damaged},
                {"figure", figure},
                {"csv", table}});
    return kDone;
  }
  const auto& named = decisive(all, all.looks.back());
  std::cout
      << table_of(all, task, false).text()
      << fmt::format(
             "\nLayer {}, head {}, without which most is lost: its eigenvalue at each letter, "
             "how far the keys\nof its reflections lie on one line, and how much of what it "
             "holds a token leaves. By length:\nwords that are wrong, and the median lead of "
             "the right answer over the next.\n",
             named.layer, named.head)
      << "table: " << table << "\nfigure: " << figure << "\n";
  return kDone;
}

}  // namespace lrnn::cli
