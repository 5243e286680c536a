#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/eval_measure.h"
#include "cli/output.h"
#include "experiments/result.h"
#include "figures/table.h"
#include "mixers/delta_product.h"

// How much of what a model gets wrong is the model, and how much the kernel that runs it?
namespace lrnn::cli {
namespace {

// With more heads at once than this small heads get a kernel that is accurate whatever is asked for
// (kernels/cuda/choose.h), and there would be nothing to compare.
constexpr int64_t kFewHeads = 511;
constexpr size_t kRows = 16;  // of the table for people

std::vector<size_t> some_of(size_t count) {
  std::vector<size_t> out;
  const size_t every = std::max<size_t>(1, (count + kRows - 1) / kRows);
  for (size_t i = 0; i < count; ++i)
    if (i % every == 0 || i + 1 == count) out.push_back(i);
  return out;
}

figures::Table table(const std::vector<Curve>& curves, const std::vector<size_t>& rows,
                     int digits) {
  const auto& first = *curves.front().measured;
  std::vector<std::string> head = {first.prefix ? "position" : "length", "sequences"};
  for (const auto& curve : curves) head.push_back(curve.name);
  figures::Table out(head);
  for (const size_t i : rows) {
    std::vector<std::string> cells = {label(first.bins[i]),
                                      std::to_string(first.bins[i].tally.count)};
    for (const auto& [name, m] : curves)
      cells.push_back(
          decimals(experiments::scaled(m->bins[i].tally.accuracy(), m->chance()), digits));
    out.row(cells);
  }
  return out;
}

Json to_json(const Curve& curve) {
  Json out = {{"name", curve.name}, {"evaluation", experiments::to_json(curve.measured->whole)}};
  for (const auto& b : curve.measured->bins)
    out["bins"].push_back({{"low", b.lo},
                           {"high", b.hi},
                           {"right", b.tally.right},
                           {"count", b.tally.count},
                           {"interval", {b.low, b.high}}});
  return out;
}

}  // namespace

int compare_kernels(experiments::Run& run, const EvalArguments& a) {
  if (a.precision == "float32")
    throw Error("float32 inputs always get the exact kernel",
                "leave --precision out: several kernels are compared on bfloat16");
  const auto mixer = load<mixers::DeltaProductConfig>(run.config.model.mixer, {"name"});
  training::EvaluateOptions how;
  how.batch = std::max<int64_t>(1, kFewHeads / mixer.heads);
  std::vector<std::string> names = {"float32 recurrence"};
  std::vector<Measured> measured = {measure(run, a, how)};
  how.precision = "bfloat16";
  for (const auto& kernel : a.kernels) {
    how.kernel = kernel;
    names.push_back("bfloat16 " + kernel), measured.push_back(measure(run, a, how));
  }
  std::vector<Curve> curves;
  for (size_t i = 0; i < names.size(); ++i) curves.push_back({names[i], &measured[i]});

  const size_t count = measured[0].bins.size();
  const auto some = table(curves, some_of(count), 4);
  std::vector<size_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = i;
  const std::string csv = a.run + "/eval/kernels.csv", markdown = a.run + "/eval/kernels.md",
                    figure = a.run + "/figures/kernels.svg";
  write_file(csv, table(curves, all, 6).csv());
  write_file(markdown, some.markdown());
  write_file(figure, chart(run, curves));
  if (a.json) {
    Json lines = Json::array();
    for (const auto& curve : curves) lines.push_back(to_json(curve));
    print_json({{"run", a.run},
                {"step", run.step},
                {"damaged", run.damaged},
                {"curves", lines},
                {"csv", csv},
                {"markdown", markdown},
                {"figure", figure}});
    return kDone;
  }
  std::cout << some.text() << "\ntables: " << csv << ", " << markdown << "\nfigure: " << figure
            << "\n";
  return kDone;
}

}  // namespace lrnn::cli
