#pragma once
#include <string>

#include "compile/margin.h"

namespace lrnn::cli {

// "margin: every weight may move by up to 0.036, and it stays right up to length 256", or that none
// could be shown, and why.
std::string margin_text(const compile::Margin& margin);

}  // namespace lrnn::cli
