#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/device.h"
#include "cli/eval_measure.h"
#include "cli/open_run.h"
#include "cli/output.h"
#include "experiments/result.h"
#include "figures/table.h"

namespace lrnn::cli {
namespace {

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
  auto run = open_run(a.run);
  const std::string mixer = run.config.model.mixer.text("name");
  check(a.kernels.empty() || mixer == "delta_product",
        "--kernel chooses between kernels of delta_product, and this model's mixer is ", mixer);
  run.model->to(torch::Device(device));
  if (a.kernels.size() > 1) return compare_kernels(run, a);
  training::EvaluateOptions how;
  how.precision = a.precision.empty() ? run.config.train.precision : a.precision;
  if (!a.kernels.empty()) how.kernel = a.kernels[0];
  const auto m = measure(run, a, how);
  const std::string csv_file = a.run + "/eval/length.csv", figure = a.run + "/figures/length.svg";
  write_file(csv_file, csv(m).csv());
  write_file(figure,
             chart(run, {{fmt::format("{}, {}", run.config.task.text("name"), mixer), &m}}));
  const auto& e = m.whole;
  if (a.json) {
    print_json({{"run", a.run},
                {"step", run.step},
                {"damaged", run.damaged},
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
  auto lengths = std::make_shared<std::string>();
  app.add_option("--lengths", *lengths, "LOW:HIGH (default: the task's own, and those of training)")
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
  app.add_option("--kernel", a->kernels,
                 "of delta_product with cuda: exact, accurate or fast; several are compared")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"exact", "accurate", "fast"}))
      ->type_name("NAME,..");
  app.add_flag("--json", a->json, "one JSON object");
  const auto device = add_device(app);
  app.footer(
      "Writes RUN/eval/length.csv and RUN/figures/length.svg. Without options the numbers are "
      "those\n"
      "of the end of training. Several kernels are compared on the same sequences: they read "
      "bfloat16, "
      "and\nthe recurrence in float32 stands beside them (RUN/eval/kernels.md, "
      "RUN/figures/kernels.svg).\n\nExamples:\n  lrnn eval runs/x --lengths 3:1024 --samples 4096\n"
      "  lrnn eval runs/x --device cuda --kernel exact,accurate,fast");
  return [a, lengths, device] {
    if (!a->kernels.empty() && *device == "cpu")
      throw Error("--kernel chooses between GPU kernels", "add --device cuda, or leave it out");
    if (!lengths->empty()) a->length = parse_lengths(*lengths);
    const auto stream = use_device(*device);
    return evaluate_run(*a, *device);
  };
}

}  // namespace lrnn::cli
