#pragma once
#include <string>
#include <vector>

namespace lrnn {

// The one of `known` that a typo most likely meant: at most two single-letter edits away (one for
// words of up to three letters), where case, '-', '_' and spaces do not count; empty when there is
// none.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace lrnn
