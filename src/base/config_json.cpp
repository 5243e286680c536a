#include "base/config_json.h"

#include "base/config.h"

namespace lrnn {

using Json = nlohmann::ordered_json;

Json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    Json out = Json::object();
    for (const auto& item : node) out[item.first.as<std::string>()] = to_json(item.second);
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::array();
    for (const auto& item : node) out.push_back(to_json(item));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  bool truth;
  int64_t whole;
  double real;
  if (node.Tag() != "!" && parse(node, truth)) return truth;  // "!": it was quoted
  const bool fraction = node.Scalar().find_first_of(".eE") != std::string::npos;  // 1.0 stays one
  if (node.Tag() != "!" && !fraction && parse(node, whole)) return whole;
  if (node.Tag() != "!" && parse(node, real)) return real;
  return node.Scalar();
}

}  // namespace lrnn
