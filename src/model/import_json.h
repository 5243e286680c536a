#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace lrnn::model {

// One object of a published config.json, whose values are what somebody else wrote. A key that is
// absent or null has the published default; one of a wrong type or size is an Error with its name.
class PublishedJson {
 public:
  using Json = nlohmann::ordered_json;
  PublishedJson(const Json& object, std::string source)
      : json_(object), source_(std::move(source)) {}

  bool has(const std::string& key) const { return json_.contains(key) && !json_[key].is_null(); }
  const Json& at(const std::string& key) const { return json_.at(key); }

  int64_t whole(const std::string& key, int64_t standard, int64_t least, int64_t most) const {
    if (!has(key)) return standard;
    const Json& value = json_[key];
    if (!value.is_number_integer() || (value.is_number_unsigned() && value > uint64_t(INT64_MAX)) ||
        value.get<int64_t>() < least || value.get<int64_t>() > most)
      wrong(key, cat("must be a whole number from ", least, " to ", most));
    return value.get<int64_t>();
  }
  int64_t size(const std::string& key, int64_t standard) const {
    return whole(key, standard, 1, kLargest);
  }
  double number(const std::string& key, double standard, double above) const {
    if (!has(key)) return standard;
    const Json& value = json_[key];
    if (!value.is_number() || !(value.get<double>() > above) || value.get<double>() > 1e15)
      wrong(key, cat("must be a number above ", above));
    return value.get<double>();
  }
  bool truth(const std::string& key, bool standard) const {
    if (!has(key)) return standard;
    if (!json_[key].is_boolean()) wrong(key, "must be true or false");
    return json_[key].get<bool>();
  }
  std::string word(const std::string& key, const std::string& standard) const {
    if (!has(key)) return standard;
    if (!json_[key].is_string()) wrong(key, "must be a text");
    return json_[key].get<std::string>();
  }

  // What our models lack: the key must be absent, null or one of these.
  void only(const std::string& key, const std::vector<Json>& ones) const {
    if (!has(key)) return;
    for (const auto& one : ones)
      if (json_[key] == one) return;
    throw Error(cat(source_, ": lrnn has no model with ", key, " ", shown(key)));
  }
  [[noreturn]] void wrong(const std::string& key, const std::string& what) const {
    throw Error(cat(source_, ": ", key, " ", what, ", got ", shown(key)));
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(cat(source_, ": ", what)); }
  const std::string& source() const { return source_; }

  static constexpr int64_t kLargest = 10'000'000;

 private:
  std::string shown(const std::string& key) const {
    const std::string text = json_[key].dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() <= 60 ? text : text.substr(0, 60) + " …";
  }
  const Json& json_;
  std::string source_;
};

}  // namespace lrnn::model
