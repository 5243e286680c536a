#pragma once
#include <functional>

#include "training/evaluate.h"
#include "training/token_losses.h"

namespace lrnn::training {

// The loss of a text's held-out windows, by domain. `look` sees every window, with the losses of
// its positions.
using Look = std::function<void(const tasks::Example&, const TokenLosses&)>;
Evaluation evaluate_text(model::Model& model, const tasks::Task& task,
                         const EvaluateOptions& options, const Look& look = {});

}  // namespace lrnn::training
