#pragma once
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

namespace lrnn {

// A config as JSON: what YAML would read as a number or a truth value becomes one.
nlohmann::ordered_json to_json(const YAML::Node& node);

}  // namespace lrnn
