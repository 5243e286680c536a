#pragma once
#include <string>

#include "model/model.h"
#include "training/batch.h"

namespace lrnn::training {

// Where numbers first stop being finite on the way from the tokens to the loss of this batch: a
// weight, the output of a block, or the loss itself.
std::string find_in_forward(model::Model& model, const Batch& batch, const std::string& precision);

// The weight nearest to the loss whose gradient is not finite; the ones before it only inherit it.
std::string find_in_gradients(const model::Model& model);

}  // namespace lrnn::training
