#include "cli/margin_text.h"

#include <fmt/format.h>

#include <cmath>

namespace lrnn::cli {

std::string margin_text(const compile::Margin& margin) {
  if (margin.weight == 0)
    return fmt::format("margin: none could be shown, because of {}", margin.limit);
  // Rounded down: it is a promise.
  const double digit = std::pow(10, std::floor(std::log10(margin.weight)) - 1);
  return fmt::format(
      "margin: every weight may move by up to {:.2g}, and it stays right up to length {}",
      std::floor(margin.weight / digit) * digit, margin.length);
}

}  // namespace lrnn::cli
