#pragma once
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/limits.h"

// A config is a plain struct with one list of its fields:
//
//   struct Config {
//     int64_t width = 128, heads = 4;
//     template <class Visit> void fields(Visit&& visit) {
//       visit("width", width, "of a token");
//       visit("heads", heads, "independent states", at_least(1));    // limits: base/limits.h
//     }
//     void check(const Section& at) const {                          // optional: what limits can't
//       at.require(width % heads == 0, "heads", "must divide the width, got ", heads);
//     }
//   };
//
// Reading, help, printing and comparing are visitors over that list, so none can drift from the
// others. A key that is not in the list is an error, never a shrug.
namespace lrnn {

// ----------------------------------------------------------------------------- one value each way

bool parse(const YAML::Node& node, bool& out);
bool parse(const YAML::Node& node, int64_t& out);  // 1000, and so 1e3 and 1000.0
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

// How a text says a whole number: not at all, or too large for one.
enum class Whole { kYes, kNo, kTooLarge };
Whole parse_whole(const std::string& text, int64_t& out);

// ------------------------------------------------------------------------------------ a document

// One mapping of a YAML document, together with where it stands: for errors that name file, line
// and key. Copies share the document.
class Section {
 public:
  Section() = default;

  static Section from_file(const std::string& file);
  static Section from_text(const std::string& text, const std::string& name = "config");

  // "train.steps=100", from the command line. Where the key is a text, what stands behind the = is
  // that text, to the letter; everywhere else it is YAML. A missing mapping on the way is created.
  void set(const std::string& assignment);

  bool has(const std::string& key) const;
  // Whether there is a value for a field of that type: on the command line an empty text is one.
  template <class T> bool gives(const std::string& key, const T&) const { return has(key); }
  bool gives(const std::string& key, const std::string&) const { return has(key) || given(key); }
  // False, and `out` as it was, where the key's value is not of that type.
  template <class T> bool read(const std::string& key, T& out) const {
    return parse(node_[key], out);
  }
  bool read(const std::string& key, std::string& out) const;
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
  // "… must be a whole number, got 'many'"
  [[noreturn]] void wrong_type(const std::string& key, const std::string& kind) const;

  const std::string& path() const { return path_; }
  const YAML::Node& node() const { return node_; }
  std::string full(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  std::string dump() const;

 private:
  // A value from the command line: it has no line, and only its reader knows whether it is YAML.
  struct Given {
    std::string text, problem;  // why it is not YAML, if it is not
  };
  const Given* given(const std::string& key) const;

  struct Document {
    std::string name;
    std::map<std::string, Given> given;  // by full key
  };
  std::shared_ptr<Document> document_;
  std::string path_;
  YAML::Node node_;
};

// ------------------------------------------------------------------------- visitors over the list

namespace detail {

template <class T>
concept Struct = requires(T t) {
  t.fields([](auto&&...) {});
};
template <class T>
concept Checked = requires(const T t, const Section& at) {
  t.check(at);
};

// Complains of a key outside `known`: the nearest known one first, then all of them.
void check_keys(const Section& at, const std::vector<std::string>& known);
std::string type_name(const std::string& kind);  // "whole number" of "a whole number"

}  // namespace detail

// Fills a `Config` from `at`. `also` names keys that somebody else reads (such as `name`).
template <class Config> Config load(const Section& at, std::vector<std::string> also = {}) {
  Config config;
  std::vector<std::string> known = std::move(also);
  config.fields([&](const char* key, auto& field, const char* /*help*/, const Limits& limits = {}) {
    using Field = std::remove_reference_t<decltype(field)>;
    known.emplace_back(key);
    if constexpr (std::is_same_v<Field, Section>) {
      field = at.child(key);
    } else if constexpr (detail::Struct<Field>) {
      field = load<Field>(at.child(key));
    } else if (at.gives(key, field)) {
      if (!at.read(key, field)) at.wrong_type(key, kind(field));
      // A type of a task's own has its limits in itself.
      if constexpr (requires { limits.problem(field); })
        if (const auto problem = limits.problem(field); !problem.empty()) at.fail(key, problem);
    }
  });
  detail::check_keys(at, known);
  if constexpr (detail::Checked<Config>) config.check(at);
  return config;
}

// Every field with its value, in the order of the list.
template <class Config> YAML::Node save(Config config) {
  YAML::Node node(YAML::NodeType::Map);
  config.fields([&](const char* key, auto& field, const char* /*help*/, const Limits& = {}) {
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

// One key as people and programs are told of it.
struct Key {
  std::string name;     // below its sections: "mlp.hidden"
  std::string type;     // "whole number"; "section" where somebody else reads what is below
  YAML::Node standard;  // its value where nobody says another
  Limits limits;
  std::string help;
};

// Every key, in the order of the list.
template <class Config> std::vector<Key> keys(const std::string& prefix = {}) {
  std::vector<Key> out;
  Config config;
  config.fields([&](const char* key, auto& field, const char* text, const Limits& limits = {}) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Section>)
      out.push_back({prefix + key, "section", {}, limits, text});
    else if constexpr (detail::Struct<Field>)
      for (auto& below : keys<Field>(prefix + key + ".")) out.push_back(std::move(below));
    else
      out.push_back({prefix + key, detail::type_name(kind(field)), print(field), limits, text});
  });
  return out;
}

// One line per key: its name and value, what it means, its type and limits.
std::string help(const std::vector<Key>& keys);

// The keys on which two resolved configs differ, as "train.steps: 100 -> 200".
std::vector<std::string> differences(const YAML::Node& a, const YAML::Node& b,
                                     const std::string& prefix = {});

// A config as JSON: what YAML would read as a number or a truth value becomes one.
nlohmann::ordered_json to_json(const YAML::Node& node);

}  // namespace lrnn
