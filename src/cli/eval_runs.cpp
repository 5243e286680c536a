#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/output.h"
#include "experiments/identity.h"
#include "experiments/metrics.h"

// `lrnn eval`: runs of one task side by side, as table, CSV and figure.
namespace lrnn::cli {
namespace {

struct EvaluatedRun {
  std::string folder;  // as it was named
  experiments::Run run;
  Measured measured;
  experiments::Identity model;
  std::string csv() const { return folder + "/eval/length.csv"; }
  std::string figure() const { return folder + "/figures/length.svg"; }
};

// What the task asks, whatever the lengths and numbers of its sequences.
YAML::Node question(const experiments::Run& run) {
  YAML::Node out = YAML::Clone(experiments::resolve(run.config)["task"]);
  out.remove("train"), out.remove("eval");
  return out;
}

// Why two runs cannot stand in one table; empty when they can.
std::string difference_of(const experiments::Run& a, const experiments::Run& b) {
  const auto one = a.config.task.text("name"), other = b.config.task.text("name");
  if (one != other) return cat(one, " and ", other);
  const auto settings = differences(question(a), question(b));
  if (!settings.empty()) return cat(one, " with ", settings.front());
  return a.task->score() == b.task->score() ? "" : cat(one, " with another score");
}

void require_one_question(const std::vector<EvaluatedRun>& all) {
  for (const auto& other : all)
    if (const auto why = difference_of(all.front().run, other.run); !why.empty())
      throw Error(cat(all.front().folder, " and ", other.folder, " have different tasks: ", why),
                  "only runs of one task fit into one table; evaluate the others by themselves");
}

std::vector<EvaluatedRun> open_all(const EvalArguments& a, const std::string& device) {
  std::vector<EvaluatedRun> out;
  std::set<std::string> seen;
  for (const auto& folder : a.runs) {
    check(seen.insert(folder).second, "the run ", folder, " is named twice");
    out.push_back({folder, open_run(folder), {}, {}});
    auto& run = out.back().run;
    out.back().model = experiments::identity(run.config.model);
    const std::string mixer = run.config.model.mixer.text("name");
    check(a.accuracies.empty() || mixer == "delta_product" || mixer == "delta_net",
          "--accuracy chooses between kernels of delta_product, and this model's mixer is ", mixer);
    run.model->to(torch::Device(device));
  }
  require_one_question(out);
  return out;
}

void measure_all(std::vector<EvaluatedRun>& all, const Sequences& sequences,
                 const EvalArguments& a) {
  for (auto& [folder, run, measured, model] : all) {
    training::EvaluateOptions how;
    how.precision = a.precision.empty() ? run.config.train.precision : a.precision;
    if (!a.accuracies.empty()) how.accuracy = a.accuracies[0];
    measured = measure(run, sequences, how);
  }
}

EvalCurve curve_of(const EvaluatedRun& one, const std::string& name) {
  return {name, &one.measured, figures::style_of(one.model.key), one.run.task.get()};
}

std::string figure_alone(const EvaluatedRun& one) {
  return chart(
      {curve_of(one, fmt::format("{}, {}", one.run.config.task.text("name"), one.model.name))});
}

Json json_of(const EvaluatedRun& one, const std::string& figure) {
  return {{"run", one.folder},
          {"step", one.run.step},
          {"damaged", one.run.damaged},
          {"evaluation", experiments::to_json(one.measured.whole)},
          {one.measured.positions ? "positions" : "lengths", lengths_json(one.measured)},
          {"csv", one.csv()},
          {"figure", figure}};
}

std::string result_line(const EvaluatedRun& one, const Sequences& sequences) {
  const auto& e = one.measured.whole;
  std::string out = fmt::format("accuracy {:.4f}, scaled {:.4f}", e.accuracy(), e.scaled());
  if (one.measured.prefix) out += fmt::format(", per token {:.4f}", e.tokens.accuracy());
  return out + fmt::format(" on {} sequences of length {} (step {})\n",
                           thousands(e.sequences.count), in_words(sequences.lengths),
                           thousands(one.run.step));
}

int report_one(const EvalArguments& a, const EvaluatedRun& one, const Sequences& sequences) {
  const std::string figure = a.out.empty() ? one.figure() : a.out;
  write_file(one.csv(), lengths_csv(one.measured).csv());
  write_file(figure, figure_alone(one));
  if (a.json) return print_json(json_of(one, figure)), kDone;
  std::cout << lengths_table(one.measured).text() << "\n"
            << result_line(one, sequences) << "table: " << one.csv() << "\nfigure: " << figure
            << "\n";
  return kDone;
}

int report_several(const EvalArguments& a, const std::vector<EvaluatedRun>& all,
                   const Sequences& sequences) {
  std::vector<EvalCurve> curves;
  const auto names = short_names(a.runs);
  for (size_t i = 0; i < all.size(); ++i)
    curves.push_back(curve_of(all[i], names[i] + ": " + all[i].model.name));
  const std::string figure = a.out.empty() ? a.runs[0] + "/figures/lengths.svg" : a.out;
  for (const auto& one : all) {
    write_file(one.csv(), lengths_csv(one.measured).csv());
    write_file(one.figure(), figure_alone(one));
  }
  write_file(figure, chart(curves));
  if (a.json) {
    Json runs = Json::array();
    for (const auto& one : all) runs.push_back(json_of(one, one.figure()));
    return print_json({{"runs", runs}, {"figure", figure}}), kDone;
  }
  std::cout << side_by_side(curves, kRowsForPeople, 4).text() << "\n";
  for (size_t i = 0; i < all.size(); ++i)
    std::cout << names[i] << ": " << result_line(all[i], sequences);
  std::cout << "tables:";
  for (const auto& one : all) std::cout << " " << one.csv();
  std::cout << "\nfigure: " << figure << "\n";
  return kDone;
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& folders) {
  std::vector<std::vector<std::string>> parts;
  size_t longest = 1;
  for (const auto& folder : folders) {
    parts.emplace_back();
    for (size_t begin = 0; begin <= folder.size();) {
      const size_t end = std::min(folder.find('/', begin), folder.size());
      if (end > begin) parts.back().push_back(folder.substr(begin, end - begin));
      begin = end + 1;
    }
    longest = std::max(longest, parts.back().size());
  }
  std::vector<std::string> out;
  for (size_t count = 1; count <= longest; ++count) {
    out.clear();
    for (const auto& of : parts) {
      std::string name;
      for (size_t i = of.size() - std::min(count, of.size()); i < of.size(); ++i)
        name += (name.empty() ? "" : "/") + of[i];
      out.push_back(name);
    }
    if (std::set<std::string>(out.begin(), out.end()).size() == out.size()) break;
  }
  return out;
}

int evaluate_runs(const EvalArguments& a, const std::string& device) {
  if (a.accuracies.size() > 1 && a.runs.size() > 1)
    throw Error("several kernels are compared on one run at a time",
                "name one run, or one kernel for all of them");
  auto all = open_all(a, device);
  if (a.accuracies.size() > 1) return compare_kernels(all.front().run, a);
  const auto sequences = sequences_of(all.front().run, a);
  measure_all(all, sequences, a);
  return all.size() > 1 ? report_several(a, all, sequences) : report_one(a, all.front(), sequences);
}

}  // namespace lrnn::cli
