#include "tasks/text_data.h"

namespace lrnn::tasks {
namespace {

bool parse_source(const YAML::Node& node, TextData::Source& out) {
  if (node.IsScalar()) return lrnn::parse(node, out.path) && !out.path.empty();
  if (!node.IsMap()) return false;
  for (const auto& item : node) {
    const auto key = item.first.Scalar();
    if (key == "path" && lrnn::parse(item.second, out.path)) continue;
    if (key == "weight" && lrnn::parse(item.second, out.weight) && out.weight > 0 &&
        out.weight < 1e9)
      continue;
    return false;
  }
  return !out.path.empty();
}

}  // namespace

bool parse(const YAML::Node& node, TextData& out) {
  TextData read;
  if (node.IsSequence()) {
    for (const auto& item : node)
      if (!parse_source(item, read.sources.emplace_back())) return false;
  } else if (!parse_source(node, read.sources.emplace_back())) {
    return false;
  }
  out = read;
  return true;
}

YAML::Node print(const TextData& value) {
  YAML::Node out(YAML::NodeType::Sequence);
  for (const auto& source : value.sources) {
    YAML::Node one(YAML::NodeType::Map);
    one["path"] = source.path;
    one["weight"] = lrnn::print(source.weight);
    out.push_back(one);
  }
  if (value.sources.empty()) out.SetStyle(YAML::EmitterStyle::Flow);
  return out;
}

}  // namespace lrnn::tasks
