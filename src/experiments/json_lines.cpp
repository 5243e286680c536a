#include "experiments/json_lines.h"

#include <cmath>
#include <fstream>

namespace lrnn::experiments {

std::vector<nlohmann::ordered_json> read_json_lines(const std::string& file) {
  std::vector<nlohmann::ordered_json> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (auto json = nlohmann::ordered_json::parse(line, nullptr, false); json.is_object())
      out.push_back(std::move(json));
  return out;
}

double number_in(const nlohmann::ordered_json& object, const std::string& key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

}  // namespace lrnn::experiments
