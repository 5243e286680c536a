#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "training/evaluate.h"

// What a run has measured, as JSON: the lines of metrics.jsonl, evaluations, curves.
namespace lrnn::experiments {

// The objects of metrics.jsonl or timing.jsonl; none when there is no such file. A line that was
// cut short is passed over.
std::vector<nlohmann::ordered_json> read_json_lines(const std::string& file);

// The number under that key. NaN where it is missing, or null: so JSON writes what is not finite.
double number_in(const nlohmann::ordered_json& object, const std::string& key);

// How a run went, from its metrics.jsonl; it may be unfinished, or at work.
struct Curves {
  std::string folder;
  int64_t steps = 0;  // where it is to end
  // The lines by their kind: training, evaluations, and changes of its end.
  std::vector<nlohmann::ordered_json> train, eval, changes;
  bool text = false;  // of a language model: what counts is the loss
};

// An Error when the folder is no run, or one that has not come so far yet.
Curves read_curves(const std::string& folder);

// tokens_per_second, tflops_per_second and, where it is known, mfu.
struct Speed;
void add_speed(const Speed& speed, nlohmann::ordered_json& line);

// What a line of metrics.jsonl says of an evaluation beside loss and accuracy: "scaled", and where
// every position is answered "token_accuracy" and "prefix", the share of sequences right up to each
// power of two, by that length.
nlohmann::ordered_json scores_json(const training::Evaluation& evaluation);

// The evaluations among lines of metrics.jsonl as a table for other programs: step, split (test or
// validation), scaled accuracy (of texts empty), accuracy, loss.
std::string evaluations_csv(const std::vector<nlohmann::ordered_json>& lines);

nlohmann::ordered_json domains_json(const std::vector<training::Domain>& domains);
// Everything in an evaluation, and back again without loss.
nlohmann::ordered_json to_json(const training::Evaluation& evaluation);
training::Evaluation evaluation_from_json(const nlohmann::ordered_json& json);

}  // namespace lrnn::experiments
