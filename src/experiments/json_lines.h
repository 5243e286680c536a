#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lrnn::experiments {

// The objects of metrics.jsonl or timing.jsonl; none when there is no such file. A line that was
// cut short is passed over.
std::vector<nlohmann::ordered_json> read_json_lines(const std::string& file);

// The number under that key. NaN where it is missing, or null: so JSON writes what is not finite.
double number_in(const nlohmann::ordered_json& object, const std::string& key);

}  // namespace lrnn::experiments
