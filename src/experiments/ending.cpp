#include "experiments/ending.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "experiments/state.h"

namespace lrnn::experiments {

using training::TrainConfig;

bool about_the_end(const std::string& text) {
  for (const std::string key : {"train.steps", "train.stop_at"})
    if (text.rfind(key + ":", 0) == 0 || text.rfind(key + "=", 0) == 0) return true;
  return false;
}

void check_end(const Checkpoints& checkpoints, const TrainConfig& before, const TrainConfig& now) {
  const int64_t step = checkpoints.newest(nullptr);
  if (step < 0) return;
  if (now.steps < step)
    throw Error(cat("the run is at step ", step, " already and cannot end at step ", now.steps),
                cat("train.steps must be at least ", step,
                    "; an earlier checkpoint begins a run of its own with --from"));
  const auto best = read_state(checkpoints.path(step) + "/state.json").best_accuracy;
  if (now.steps > step && now.ended(step, best) && now.steps != before.steps &&
      now.stop_at == before.stop_at)
    throw Error(cat("the run ended at step ", step, ": an evaluation of ", best,
                    " reached train.stop_at, ", now.stop_at),
                "add train.stop_at=0 to go on to the last step");
}

std::string change_of_end(int64_t step, const TrainConfig& before, const TrainConfig& now) {
  if (now.steps == before.steps && now.stop_at == before.stop_at) return "";
  // With the same number of steps it is longer when an evaluation must be better to end it.
  const auto hurdle = [](const TrainConfig& c) { return c.stop_at > 0 ? c.stop_at : 2; };
  const bool longer =
      now.steps == before.steps ? hurdle(now) > hurdle(before) : now.steps > before.steps;
  nlohmann::ordered_json line{{"kind", longer ? "extended" : "shortened"}, {"step", step}};
  if (now.steps != before.steps) line["steps"] = {{"from", before.steps}, {"to", now.steps}};
  if (now.stop_at != before.stop_at)
    line["stop_at"] = {{"from", before.stop_at}, {"to", now.stop_at}};
  return line.dump();
}

}  // namespace lrnn::experiments
