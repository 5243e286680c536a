#pragma once
#include <yaml-cpp/yaml.h>

#include <string>

namespace lrnn {

// YAML that cannot be what its writer meant. Lines count from 1.
struct YamlProblem {
  int line = 0;
  std::string what, hint;
};

// Reads one document. YAML gives some texts a meaning that makes them vanish: `!(ab)*` is a tag and
// `&x` an anchor, both without a value. Those are problems, as is what cannot be read at all; the
// result is then undefined and `problem.what` is not empty.
YAML::Node read_yaml(const std::string& text, YamlProblem& problem);

}  // namespace lrnn
