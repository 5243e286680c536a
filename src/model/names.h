#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

// A tensor of ours under its published name. Most are the same: ours are fla's.
namespace lrnn::model {

class PublishedNames {
 public:
  // `fused` is false for GLA with a gate whose norm stands apart from it (fuse_norm: false).
  explicit PublishedNames(const std::string& type, bool fused = true);
  std::string operator()(std::string ours) const;

 private:
  std::vector<std::pair<std::string, std::string>> parts_;  // ours, theirs
};
// Of a model with this config.json.
PublishedNames names_of(const std::string& type, const nlohmann::ordered_json& config);

}  // namespace lrnn::model
