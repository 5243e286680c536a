#include <fmt/format.h>

#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/eval.h"
#include "experiments/metrics.h"
#include "mixers/delta_product.h"

// How much of what a model gets wrong is the model, and how much the kernel that runs it?
namespace lrnn::cli {
namespace {

// With more heads at once than this small heads get a kernel that is accurate whatever is asked for
// (kernels/cuda/delta_product/choose.h), and there would be nothing to compare.
constexpr int64_t kFewHeads = 511;
constexpr size_t kRows = 16;  // of the table for people

Json kernel_json(const EvalCurve& curve) {
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
  const auto sequences = sequences_of(run, a);
  std::vector<std::string> names = {"float32 recurrence"}, keys = {"kernel float32"};
  std::vector<Measured> measured = {measure(run, sequences, how)};
  how.precision = "bfloat16";
  for (const auto& kernel : a.accuracies) {
    how.accuracy = kernel;
    names.push_back("bfloat16 " + kernel), keys.push_back("kernel " + kernel);
    measured.push_back(measure(run, sequences, how));
  }
  std::vector<EvalCurve> curves;
  for (size_t i = 0; i < names.size(); ++i)
    curves.push_back({names[i], &measured[i], figures::style_of(keys[i]), run.task.get()});

  const auto some = side_by_side(curves, kRows, 4);
  const std::string folder = a.runs.front(), csv = folder + "/eval/kernels.csv",
                    markdown = folder + "/eval/kernels.md",
                    figure = a.out.empty() ? folder + "/figures/kernels.svg" : a.out;
  write_file(csv, side_by_side(curves, measured[0].bins.size(), 6).csv());
  write_file(markdown, some.markdown());
  write_file(figure, chart(curves));
  if (a.json) {
    Json lines = Json::array();
    for (const auto& curve : curves) lines.push_back(kernel_json(curve));
    print_json({{"run", folder},
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
