#include "experiments/curves.h"

#include <filesystem>

#include "base/error.h"
#include "experiments/json_lines.h"
#include "experiments/run.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;

Curves read_curves(const std::string& folder) {
  if (fs::exists(folder + "/manifest.json"))
    throw Error(cat(folder, " is a checkpoint"), "curves belong to the run: give its folder");
  if (!fs::exists(folder + "/config.yaml"))
    throw Error(cat(folder, " is not a run"), "give the folder that `lrnn train --out` wrote");
  Curves out{.folder = folder,
             .steps = read_config(folder + "/config.yaml", {}).train.steps,
             .train = {},
             .eval = {},
             .changes = {}};
  for (auto& line : read_json_lines(folder + "/metrics.jsonl")) {
    const auto kind = line.value("kind", "");
    auto& lines = kind == "train" ? out.train : kind == "eval" ? out.eval : out.changes;
    lines.push_back(std::move(line));
  }
  if (out.train.empty() && out.eval.empty())
    throw Error(cat("the run in ", folder, " has no metrics yet"),
                fs::exists(folder + "/compiled.json")
                    ? "it was compiled and not trained: there are no curves"
                    : "let it train on: it writes them every train.log_every steps");
  return out;
}

}  // namespace lrnn::experiments
