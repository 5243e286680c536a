#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/eval.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/text_positions.h"
#include "experiments/by_octave.h"
#include "experiments/by_position.h"
#include "experiments/identity.h"
#include "experiments/metrics.h"
#include "figures/draw.h"
#include "training/evaluate_text.h"
#include "training/threads.h"

// `lrnn eval` of language models: the loss by position in held-out windows.
namespace lrnn::cli {
namespace {

using experiments::DomainCurve;
using lrnn::tasks::Split;

// A language model and what was measured.
struct EvaluatedText {
  std::string folder;
  experiments::Run run;
  lrnn::tasks::TaskPtr task = {};
  int64_t length = 0;
  training::Evaluation whole = {};
  std::vector<DomainCurve> curves = {};
  std::vector<std::pair<std::string, experiments::ByOctave>> octaves = {};  // by domain

  std::string csv() const { return folder + "/eval/position.csv"; }
  std::string octaves_csv() const { return folder + "/eval/octave.csv"; }
  std::string figure() const { return folder + "/figures/position.svg"; }
};

int64_t one_length(const EvalArguments& a, const lrnn::tasks::Task& task) {
  if (!a.length.given()) return task.length(a.data.empty() ? Split::kEval : Split::kTrain).hi;
  if (!a.length.each.empty() || a.length.range.lo != a.length.range.hi)
    throw Error("windows of a text have one length", "such as --lengths 32768");
  return a.length.range.hi;
}

void measure_text(EvaluatedText& one, const EvalArguments& a) {
  one.task = a.data.empty() ? one.run.task : with_data(one.run, a.data);
  one.length = one_length(a, *one.task);
  one.task->verify(false);
  training::EvaluateOptions how;
  how.length = {one.length, one.length};
  how.samples = a.samples ? a.samples : a.data.empty() ? 0 : one.task->most_samples(how.length);
  how.precision = a.precision.empty() ? one.run.config.train.precision : a.precision;
  if (!a.accuracies.empty()) how.accuracy = a.accuracies[0];
  // As many threads as training has: the same bits as its last evaluation.
  const training::Threads threads(
      training::choose_threads(*one.run.model, *one.run.task, one.run.config.train));
  const auto names = one.task->domains();
  std::vector<experiments::ByPosition> positions(names.size(), experiments::ByPosition(a.smooth));
  for (const auto& name : names) one.octaves.push_back({name, {}});
  one.whole = training::evaluate_text(
      *one.run.model, *one.task, how, [&](const auto& example, const auto& losses) {
        positions[size_t(example.domain)].add(example, losses);
        one.octaves[size_t(example.domain)].second.add(example, losses);
      });
  for (size_t i = 0; i < names.size(); ++i)
    if (auto rows = positions[i].rows(); !rows.empty())
      one.curves.push_back({names[i], std::move(rows)});
}

figures::Table positions_csv(const EvaluatedText& one) {
  figures::Table out(
      {"domain", "position", "loss", "smoothed", "running_perplexity", "accuracy", "sequences"});
  for (const auto& curve : one.curves)
    for (const auto& row : curve.rows)
      out.row({curve.name, std::to_string(row.position), decimals(row.loss, 6),
               decimals(row.smoothed, 6), decimals(row.running, 6), decimals(row.accuracy, 6),
               std::to_string(row.sequences)});
  return out;
}

figures::Table octaves_csv(const EvaluatedText& one) {
  figures::Table out({"domain", "sequence", "from", "to", "loss", "targets"});
  for (const auto& [name, octaves] : one.octaves)
    for (const auto& row : octaves.rows())
      out.row({name, std::to_string(row.sequence), std::to_string(row.from), std::to_string(row.to),
               decimals(row.loss, 6), std::to_string(row.targets)});
  return out;
}

figures::Series position_series(const std::string& name, const DomainCurve& curve) {
  figures::Series out{name, {}};
  double next = 1;
  for (size_t i = 0; i < curve.rows.size(); ++i) {
    const auto& row = curve.rows[i];
    if (double(row.position) < next && i + 1 < curve.rows.size()) continue;
    out.points.push_back(
        {double(row.position), row.smoothed, row.smoothed - row.error, row.smoothed + row.error});
    next = double(row.position) * kNextPosition;
  }
  return out;
}

std::string position_figure(const std::vector<const EvaluatedText*>& all) {
  const auto folders = [&] {
    std::vector<std::string> out;
    for (const auto* one : all) out.push_back(one->folder);
    return short_names(out);
  }();
  figures::LineChart chart{.title = "Loss by position",
                           .x_label = "tokens read",
                           .y_label = "loss (nats a token), smoothed",
                           .log_x = true};
  int64_t longest = 0;
  std::vector<int64_t> trained;
  for (size_t i = 0; i < all.size(); ++i) {
    for (const auto& curve : all[i]->curves) {
      const std::string name = all.size() == 1              ? curve.name
                               : all[i]->curves.size() == 1 ? folders[i]
                                                            : folders[i] + ", " + curve.name;
      chart.series.push_back(position_series(name, curve));
    }
    longest = std::max(longest, all[i]->length);
    trained.push_back(all[i]->run.task->length(Split::kTrain).hi);
  }
  std::sort(trained.begin(), trained.end());
  trained.erase(std::unique(trained.begin(), trained.end()), trained.end());
  for (const int64_t length : trained)
    if (length <= longest) chart.markers.push_back({double(length), "length in training"});
  return draw(chart);
}

figures::Table domains_table(const EvaluatedText& one) {
  figures::Table out(
      {"domain", "targets", "bytes", "loss", "perplexity", "bits per byte", "accuracy"});
  const auto row = [&](const std::string& name, const training::Domain& d) {
    out.row({name, thousands(d.tokens.count), thousands(std::llround(d.bytes)),
             decimals(d.loss(), 4), decimals(d.perplexity(), 2), decimals(d.bits_per_byte(), 4),
             decimals(d.tokens.accuracy(), 4)});
  };
  for (const auto& domain : one.whole.domains) row(domain.name, domain);
  if (one.whole.domains.size() > 1) row("all", one.whole.all_domains());
  return out;
}

Json text_json(const EvaluatedText& one, const std::string& figure) {
  return {{"run", one.folder},          {"step", one.run.step},
          {"damaged", one.run.damaged}, {"loss", one.whole.loss},
          {"length", one.length},       {"domains", experiments::domains_json(one.whole.domains)},
          {"csv", one.csv()},           {"figure", figure}};
}

}  // namespace

lrnn::tasks::TaskPtr with_data(const experiments::Run& run, const std::vector<std::string>& data) {
  YAML::Node task = YAML::Clone(experiments::resolve(run.config)["task"]);
  // An imported model has another task, and no data of its own.
  if (task["name"].Scalar() != "text") task = YAML::Load("{name: text, train: {length: 2048}}");
  task["data"] = YAML::Node(YAML::NodeType::Sequence);
  for (const auto& path : data) task["data"].push_back(path);
  task["vocabulary"] = run.model->vocabulary();
  return lrnn::tasks::make(Section::from_text(YAML::Dump(task), "--data"));
}

bool is_language_model(const std::string& run) {
  const auto file = find_run(run) + "/config.yaml";
  return std::filesystem::exists(file) &&
         experiments::read_config(file, {}).task.text("name") == "text";
}

int evaluate_texts(const EvalArguments& a, const std::string& device) {
  check(a.accuracies.size() < 2, "kernels are not compared on texts: name one");
  std::vector<EvaluatedText> all;
  for (const auto& name : a.runs) {
    check(is_language_model(name) || std::filesystem::is_directory(find_run(name) + "/tokenizer"),
          name, " is no language model");
    all.push_back({find_run(name), open_run(name)});
    all.back().run.model->to(torch::Device(device));
    measure_text(all.back(), a);
  }
  std::vector<const EvaluatedText*> together;
  for (const auto& one : all) {
    write_file(one.csv(), positions_csv(one).csv());
    write_file(one.octaves_csv(), octaves_csv(one).csv());
    if (all.size() > 1 || a.out.empty()) write_file(one.figure(), position_figure({&one}));
    together.push_back(&one);
  }
  const std::string figure = !a.out.empty()   ? a.out
                             : all.size() > 1 ? all[0].folder + "/figures/positions.svg"
                                              : all[0].figure();
  if (all.size() > 1 || !a.out.empty()) write_file(figure, position_figure(together));
  if (a.json) {
    if (all.size() == 1) return print_json(text_json(all[0], figure)), kDone;
    Json runs = Json::array();
    for (const auto& one : all) runs.push_back(text_json(one, one.figure()));
    return print_json({{"runs", runs}, {"figure", figure}}), kDone;
  }
  for (const auto& one : all)
    std::cout << (all.size() > 1 ? one.folder + "\n" : "") << domains_table(one).text()
              << fmt::format("{} windows of {} tokens (step {})\n",
                             thousands(one.whole.sequences.count), thousands(one.length),
                             thousands(one.run.step))
              << "table: " << one.csv() << "\n";
  std::cout << "figure: " << figure << "\n";
  return kDone;
}

}  // namespace lrnn::cli
