#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "cli/command.h"
#include "cli/device.h"
#include "cli/output.h"
#include "experiments/by_length.h"
#include "experiments/result.h"
#include "experiments/run.h"
#include "figures/line_chart.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

using experiments::LengthBin;
using lrnn::tasks::Score;
using lrnn::tasks::Split;

struct EvalArguments {
  std::string run, lengths, precision, kernel;
  int64_t samples = 0, seed = -1;
  bool json = false;
};

Range parse_lengths(const std::string& text) {
  Range out;
  char rest;
  const int read = std::sscanf(text.c_str(), "%ld:%ld%c", &out.lo, &out.hi, &rest);
  if (read == 1 && text.find(':') == std::string::npos) out.hi = out.lo;
  check(read == 2 || (read == 1 && out.hi == out.lo),
        "--lengths must be LOW:HIGH or one length, got '", text, "'");
  check(1 <= out.lo && out.lo <= out.hi, "--lengths must rise from at least 1, got '", text, "'");
  return out;
}

// What was measured: the whole, and the accuracy by length (or, for tasks with an answer at every
// position, of all prefixes up to a position).
struct Measured {
  training::Evaluation whole;
  std::vector<LengthBin> bins;
  bool prefix = false;
  Range length;  // of the sequences behind `whole`
};

Measured measure(experiments::Run& run, const EvalArguments& a, Range length) {
  training::EvaluateOptions how;
  how.seed = uint64_t(a.seed >= 0 ? a.seed : run.config.seed);
  how.samples = a.samples;
  how.precision = a.precision.empty() ? run.config.train.precision : a.precision;
  how.kernel = a.kernel;
  Measured out;
  out.prefix = run.task->score() == Score::kPrefix;
  // A prefix of a long sequence is as good as a short one.
  if (out.prefix) length.lo = length.hi;
  how.length = length;
  out.length = length == Range{} ? run.task->length(Split::kEval) : length;
  out.whole = training::evaluate(*run.model, *run.task, how);
  if (out.prefix) return out.bins = experiments::prefix_bins(out.whole), out;

  auto by_length = out.whole.by_length;
  if (length == Range{}) {
    // The lengths it was trained on belong into the picture too, though not into the number.
    how.length = run.task->length(Split::kTrain);
    for (const auto& [length, tally] : training::evaluate(*run.model, *run.task, how).by_length)
      if (!out.whole.by_length.contains(length)) by_length[length] = tally;
  }
  out.bins = experiments::bins(by_length);
  return out;
}

std::string label(const LengthBin& bin) {
  return bin.lo == bin.hi ? std::to_string(bin.lo) : fmt::format("{}–{}", bin.lo, bin.hi);
}

figures::Table csv(const Measured& m) {
  figures::Table out({m.prefix ? "position" : "length_low",
                      m.prefix ? "position_high" : "length_high", "right", "count", "accuracy",
                      "low95", "high95", "scaled"});
  for (const auto& b : m.bins)
    out.row({std::to_string(b.lo), std::to_string(b.hi), std::to_string(b.tally.right),
             std::to_string(b.tally.count), decimals(b.tally.accuracy(), 6), decimals(b.low, 6),
             decimals(b.high, 6),
             decimals(experiments::scaled(b.tally.accuracy(), m.whole.chance), 6)});
  return out;
}

std::string chart(const experiments::Run& run, const Measured& m) {
  const double chance = m.prefix ? 0 : m.whole.chance;
  figures::Series series{
      fmt::format("{}, {}", run.config.task.text("name"), run.config.model.mixer.text("name")), {}};
  for (const auto& b : m.bins)
    series.points.push_back(
        {double(b.lo + b.hi) / 2, experiments::scaled(b.tally.accuracy(), chance),
         experiments::scaled(b.low, chance), experiments::scaled(b.high, chance)});
  const int64_t trained = run.task->length(Split::kTrain).hi;
  const double first = m.bins.empty() ? 1 : double(std::max<int64_t>(m.bins.front().lo, 1));
  const bool wide = !m.bins.empty() && double(m.bins.back().hi) / first > 400;
  return draw(figures::LineChart{
      .title = m.prefix ? "Sequences that are right up to a position" : "Accuracy by length",
      .x_label = m.prefix ? "position" : "length of the sequence",
      .y_label = m.prefix ? "share of sequences" : "scaled accuracy",
      .series = {series},
      .markers = {{double(trained), fmt::format("longest in training: {}", trained)}},
      .y = {{0, 1}},
      .log_x = wide});
}

Json to_json(const Measured& m) {
  Json out = Json::array();
  for (const auto& b : m.bins)
    out.push_back({{"low", b.lo},
                   {"high", b.hi},
                   {"right", b.tally.right},
                   {"count", b.tally.count},
                   {"accuracy", b.tally.accuracy()},
                   {"interval", {b.low, b.high}},
                   {"scaled", experiments::scaled(b.tally.accuracy(), m.whole.chance)}});
  return out;
}

void print(const Measured& m) {
  figures::Table table({m.prefix ? "position" : "length", "sequences", "accuracy", "95 % interval",
                        m.prefix ? "right" : "scaled"});
  const size_t rows = 24, every = std::max<size_t>(1, (m.bins.size() + rows - 1) / rows);
  for (size_t i = 0; i < m.bins.size(); ++i) {
    const auto& b = m.bins[i];
    if (i % every && i + 1 != m.bins.size()) continue;
    const double accuracy = b.tally.accuracy();
    table.row({label(b), std::to_string(b.tally.count), decimals(accuracy, 4),
               decimals(b.low, 4) + " – " + decimals(b.high, 4),
               m.prefix ? std::to_string(b.tally.right)
                        : decimals(experiments::scaled(accuracy, m.whole.chance), 4)});
  }
  std::cout << table.text();
}

int evaluate_run(const EvalArguments& a, const std::string& device) {
  const Range length = a.lengths.empty() ? Range{} : parse_lengths(a.lengths);
  auto run = experiments::open(a.run);
  run.model->to(torch::Device(device));
  const auto m = measure(run, a, length);
  const std::string csv_file = a.run + "/eval/length.csv", figure = a.run + "/figures/length.svg";
  write_file(csv_file, csv(m).csv());
  write_file(figure, chart(run, m));
  const auto& e = m.whole;
  if (a.json) {
    print_json({{"run", a.run},
                {"step", run.step},
                {"evaluation", experiments::to_json(e)},
                {m.prefix ? "positions" : "lengths", to_json(m)},
                {"csv", csv_file},
                {"figure", figure}});
    return kDone;
  }
  print(m);
  std::cout << fmt::format("\naccuracy {:.4f}, scaled {:.4f}", e.accuracy(), e.scaled());
  if (m.prefix) std::cout << fmt::format(", per token {:.4f}", e.tokens.accuracy());
  std::cout << fmt::format(" on {} sequences of length {} to {} (step {})\n",
                           thousands(e.sequences.count), m.length.lo, m.length.hi,
                           thousands(run.step))
            << "table: " << csv_file << "\nfigure: " << figure << "\n";
  return kDone;
}

}  // namespace

Action eval(CLI::App& app) {
  auto a = std::make_shared<EvalArguments>();
  app.add_option("RUN", a->run, "a run folder, or a checkpoint in one")->required();
  app.add_option("--lengths", a->lengths,
                 "LOW:HIGH (default: the task's own, and those of training)")
      ->type_name("A:B");
  app.add_option("--samples", a->samples, "sequences (default: the task's own number)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_option("--seed", a->seed, "of the sequences (default: the run's)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--precision", a->precision, "float32 or bfloat16 (default: the run's)")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->type_name("NAME");
  app.add_option("--kernel", a->kernel, "of delta_product with cuda: exact, accurate or fast")
      ->check(CLI::IsMember({"exact", "accurate", "fast"}))
      ->type_name("NAME");
  app.add_flag("--json", a->json, "one JSON object");
  const auto device = add_device(app);
  app.footer(
      "Writes RUN/eval/length.csv and RUN/figures/length.svg. Without options the numbers are "
      "those\n"
      "of the end of training.\n\nExample:\n  lrnn eval runs/x --lengths 3:1024 --samples 4096");
  return [a, device] {
    if (!a->kernel.empty() && *device == "cpu")
      throw Error("--kernel chooses between GPU kernels", "add --device cuda, or leave it out");
    require_device(*device);
    return evaluate_run(*a, *device);
  };
}

}  // namespace lrnn::cli
