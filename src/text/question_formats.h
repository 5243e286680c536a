#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace lrnn::text {

// A line with a dataset's own fields as a native one; `format` as in read_questions. What does not
// fit is a BadJson or an exception of nlohmann's.
nlohmann::json as_native(const nlohmann::json& line, const std::string& format);

}  // namespace lrnn::text
