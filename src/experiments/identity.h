#pragma once
#include <string>

#include "model/model.h"

namespace lrnn::experiments {

// Which model a config describes. Models that differ only in size, depth or initial weights are the
// same here.
struct Identity {
  std::string key;   // "delta_product 2 [-1,1]": what figures::style_of takes
  std::string name;  // "DeltaProduct n_h=2 [-1,1]": for people
};
Identity identity(const model::ModelConfig& config);

}  // namespace lrnn::experiments
