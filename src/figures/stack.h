#pragma once
#include <string>
#include <vector>

namespace lrnn::figures {

// Figures below one another as one: each is an <svg> element, and so is the result.
std::string stack(const std::vector<std::string>& figures, const std::string& title);

}  // namespace lrnn::figures
