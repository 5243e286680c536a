#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lrnn::experiments {

// How a run went, from its metrics.jsonl; it may be unfinished, or at work.
struct Curves {
  std::string folder;
  int64_t steps = 0;  // where it is to end
  // The lines by their kind: training, evaluations, and changes of its end.
  std::vector<nlohmann::ordered_json> train, eval, changes;
};

// An Error when the folder is no run, or one that has not come so far yet.
Curves read_curves(const std::string& folder);

}  // namespace lrnn::experiments
