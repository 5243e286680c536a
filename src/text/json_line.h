#pragma once
#include <string>
#include <string_view>

namespace lrnn::text {

// The text of one line of JSONL: an object with the text under `field`. `where` says which line it
// is when it is not.
std::string text_of_line(std::string_view line, const std::string& field, const std::string& where);

}  // namespace lrnn::text
