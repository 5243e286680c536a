#pragma once
#include <string>
#include <vector>

#include "base/config.h"

namespace lrnn::tasks {

// The key `data` of the task `text`: a path, a list of paths, or a list of {path, weight}. It is
// written down as the last of them.
struct TextData {
  struct Source {
    std::string path;
    double weight = 1;  // of its examples among all
  };
  std::vector<Source> sources;
};

bool parse(const YAML::Node& node, TextData& out);
YAML::Node print(const TextData& value);
inline const char* kind(const TextData&) { return "a path, or a list of {path, weight}"; }

}  // namespace lrnn::tasks
