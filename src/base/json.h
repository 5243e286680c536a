#pragma once
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace lrnn {

// What is wrong with a text, for the caller to say whose text it is: "the key 'a' comes twice".
struct BadJson : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// JSON from outside. nlohmann keeps the last of two equal keys without a word, and goes as deep as
// the text asks for, which is how parsers are made to crash; here both are mistakes.
template <class Json> Json read_json(std::string_view text, int deepest = 4) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, typename Json::parse_event_t event, Json& value) {
    using Event = typename Json::parse_event_t;
    if (depth > deepest) throw BadJson("it is nested too deeply");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event != Event::key) return true;
    const auto& key = value.template get_ref<const std::string&>();
    if (!keys.back().insert(key).second) throw BadJson(cat("the key '", key, "' comes twice"));
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const typename Json::out_of_range&) {
    throw BadJson("a number in it is too large for any type");
  } catch (const typename Json::parse_error& e) {
    // "parse error at line 1, column 5: ..." -> "line 1, column 5"
    const std::string what = e.what(), mark = "parse error at ";
    const size_t begin = what.find(mark);
    const size_t at = begin == std::string::npos ? begin : begin + mark.size();
    throw BadJson(cat("this is not JSON: ", at == std::string::npos
                                                ? "its text"
                                                : what.substr(at, what.find(':', at) - at)));
  }
}

}  // namespace lrnn
