#include "experiments/state.h"

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lrnn::experiments {
namespace {

// One list for both directions.
template <class State, class Visit> void fields(State& state, Visit&& visit) {
  visit("step", state.step);
  visit("skipped", state.skipped);
  visit("metrics_bytes", state.metrics_bytes);
  visit("loss_sum", state.loss_sum);
  visit("updates", state.updates);
  visit("right", state.right);
  visit("targets", state.targets);
  visit("best_accuracy", state.best_accuracy);
  visit("best_step", state.best_step);
}

}  // namespace

std::string print(const RunState& state) {
  nlohmann::ordered_json json;
  fields(state, [&](const char* key, const auto& value) { json[key] = value; });
  return json.dump(2) + "\n";
}

RunState read_state(const std::string& file) {
  RunState state;
  try {
    const auto json = nlohmann::ordered_json::parse(read_file(file));
    fields(state, [&](const char* key, auto& value) { json.at(key).get_to(value); });
  } catch (const nlohmann::json::exception& e) {
    throw Error(cat(file, " is not the progress of a run: ", e.what()));
  }
  return state;
}

}  // namespace lrnn::experiments
