#pragma once
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

// A config is a plain struct with one list of its fields:
//
//   struct Config {
//     int64_t heads = 4;
//     template <class Visit> void fields(Visit&& visit) {
//       visit("heads", heads, "independent states");
//     }
//     void check(const Section& at) const {                    // optional
//       at.require(heads >= 1, "heads", "must be at least 1, got ", heads);
//     }
//   };
//
// Reading, help, printing and comparing are visitors over that list, so none can drift from the
// others. A key that is not in the list is an error, never a shrug.
namespace lrnn {

// Both ends included. Written [3, 40], or 128 for [128, 128].
struct Range {
  int64_t lo = 0, hi = 0;
  bool operator==(const Range&) const = default;
};

// One mapping of a YAML document, together with where it stands: for errors that name file, line
// and key. Copies share the document.
class Section {
 public:
  Section() = default;

  static Section from_file(const std::string& file);
  static Section from_text(const std::string& text, const std::string& name = "config");

  // "train.steps=100": the value is YAML; a missing mapping on the way is created.
  void set(const std::string& assignment);

  bool has(const std::string& key) const;
  Section child(const std::string& key) const;  // an absent child is an empty section
  std::string text(const std::string& key) const;

  // "configs/x.yaml:7: train.steps must be at least 1, got 0"
  template <class... Parts>
  void require(bool ok, const std::string& key, const Parts&... message) const {
    if (!ok) [[unlikely]]
      fail(key, cat(message...));
  }
  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         const std::string& hint = {}) const;

  const std::string& path() const { return path_; }
  const YAML::Node& node() const { return node_; }
  std::string full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  std::string dump() const;

 private:
  struct Document {
    std::string name;
    std::set<std::string> overridden;  // full keys set on the command line: they have no line
  };
  std::shared_ptr<Document> document_;
  std::string path_;
  YAML::Node node_;
};

// ----------------------------------------------------------------------------- one value each way

bool parse(const YAML::Node& node, bool& out);
bool parse(const YAML::Node& node, int64_t& out);
bool parse(const YAML::Node& node, double& out);
bool parse(const YAML::Node& node, std::string& out);
bool parse(const YAML::Node& node, Range& out);
bool parse(const YAML::Node& node, std::vector<int64_t>& out);
bool parse(const YAML::Node& node, std::vector<double>& out);

YAML::Node print(bool value);
YAML::Node print(int64_t value);
YAML::Node print(double value);
YAML::Node print(const std::string& value);
YAML::Node print(const Range& value);
YAML::Node print(const std::vector<int64_t>& value);
YAML::Node print(const std::vector<double>& value);

inline const char* kind(const bool&) { return "true or false"; }
inline const char* kind(const int64_t&) { return "a whole number"; }
inline const char* kind(const double&) { return "a number"; }
inline const char* kind(const std::string&) { return "a word"; }
inline const char* kind(const Range&) { return "[low, high] or one whole number"; }
inline const char* kind(const std::vector<int64_t>&) { return "a list of whole numbers"; }
inline const char* kind(const std::vector<double>&) { return "a list of numbers"; }

// ------------------------------------------------------------------------- visitors over the list

using Choices = std::initializer_list<const char*>;

namespace detail {

template <class T>
concept Struct = requires(T t) {
  t.fields([](auto&&...) {});
};
template <class T>
concept Checked = requires(const T t, const Section& at) {
  t.check(at);
};

// A key outside `known`: the nearest known one first, then all of them.
[[noreturn]] void unknown_key(const Section& at, const std::string& key,
                              const std::vector<std::string>& known);
void check_choice(const Section& at, const std::string& key, const std::string& value,
                  Choices choices);
std::string help_line(const std::string& key, const std::string& value, const std::string& help,
                      Choices choices);

}  // namespace detail

// Fills a `Config` from `at`. `also` names keys that somebody else reads (such as `name`).
template <class Config> Config load(const Section& at, std::vector<std::string> also = {}) {
  Config config;
  std::vector<std::string> known = std::move(also);
  config.fields([&](const char* key, auto& field, const char* /*help*/, Choices choices = {}) {
    using Field = std::remove_reference_t<decltype(field)>;
    known.emplace_back(key);
    if constexpr (std::is_same_v<Field, Section>) {
      field = at.child(key);
    } else if constexpr (detail::Struct<Field>) {
      field = load<Field>(at.child(key));
    } else if (at.has(key)) {
      if (!parse(at.node()[key], field))
        at.fail(key, cat("must be ", kind(field), ", got '", at.text(key), "'"));
      if constexpr (std::is_same_v<Field, std::string>)
        detail::check_choice(at, key, field, choices);
    }
  });
  for (const auto& item : at.node()) {
    const auto key = item.first.as<std::string>();
    bool found = false;
    for (const auto& name : known) found |= name == key;
    if (!found) detail::unknown_key(at, key, known);
  }
  if constexpr (detail::Checked<Config>) config.check(at);
  return config;
}

// Every field with its value, in the order of the list.
template <class Config> YAML::Node save(Config config) {
  YAML::Node node(YAML::NodeType::Map);
  config.fields([&](const char* key, auto& field, const char* /*help*/, Choices = {}) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Section>)
      node[key] = YAML::Clone(field.node());
    else if constexpr (detail::Struct<Field>)
      node[key] = save<Field>(field);
    else
      node[key] = print(field);
  });
  return node;
}

// One line per field: key, default, what it means.
template <class Config> std::string help(const std::string& prefix = {}) {
  std::string out;
  Config config;
  config.fields([&](const char* key, auto& field, const char* text, Choices choices = {}) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Section>)
      out += detail::help_line(prefix + key, "", text, choices);
    else if constexpr (detail::Struct<Field>)
      out += help<Field>(prefix + key + ".");
    else
      out += detail::help_line(prefix + key, YAML::Dump(print(field)), text, choices);
  });
  return out;
}

// The keys on which two resolved configs differ, as "train.steps: 100 -> 200".
std::vector<std::string> differences(const YAML::Node& a, const YAML::Node& b,
                                     const std::string& prefix = {});

}  // namespace lrnn
