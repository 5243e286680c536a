#include "text/json_line.h"

#include "base/json.h"

namespace lrnn::text {

std::string text_of_line(std::string_view line, const std::string& field,
                         const std::string& where) {
  using Json = nlohmann::json;
  Json object;
  try {
    object = read_json<Json>(line, 64);
  } catch (const BadJson& e) {
    throw Error(cat(where, ": ", e.what()), "a line is one JSON object, in UTF-8");
  }
  const auto found = object.is_object() ? object.find(field) : object.end();
  if (!object.is_object() || found == object.end())
    throw Error(cat(where, ": there is no '", field, "' in it"), "--field names the text's key");
  if (!found->is_string()) throw Error(cat(where, ": '", field, "' is no text"));
  return std::move(found->get_ref<std::string&>());
}

}  // namespace lrnn::text
