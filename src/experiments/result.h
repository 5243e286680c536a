#pragma once
#include <nlohmann/json.hpp>

#include "training/evaluate.h"

namespace lrnn::experiments {

// Everything in an evaluation, and back again without loss.
nlohmann::ordered_json to_json(const training::Evaluation& evaluation);
training::Evaluation evaluation_from_json(const nlohmann::ordered_json& json);

}  // namespace lrnn::experiments
