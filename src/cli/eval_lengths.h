#pragma once
#include <string>
#include <vector>

#include "base/config.h"

namespace lrnn::cli {

// Which lengths --lengths asks for.
struct Lengths {
  Range range = {};           // 3:10 or 3-10, or 7 for that one; {0,0}: the task's own
  std::vector<int64_t> each;  // 3,10,100: these and no others, rising
  bool given() const { return !each.empty() || !(range == Range{}); }
};

// An Error for anything else.
Lengths parse_lengths(const std::string& text);

// "3 to 10", "7" or "3, 10 and 100"
std::string in_words(const Lengths& lengths);

}  // namespace lrnn::cli
