#pragma once
#include <string>
#include <vector>

#include "experiments/curves.h"

namespace lrnn::cli {

// Loss and accuracy by step. One run: training and evaluation in one panel; several: a curve for
// each in panels of their own.
std::string curves_figure(const std::vector<experiments::Curves>& runs);

// The folders' own names, or the whole paths where those are not enough to tell them apart.
std::vector<std::string> short_names(const std::vector<experiments::Curves>& runs);

}  // namespace lrnn::cli
