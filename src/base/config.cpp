#include "base/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "base/nearest.h"

namespace lrnn {
namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// The shortest text that reads back as the same double: 1e-3 stays 0.001, 0.1 stays 0.1.
std::string shortest(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string out(text, end);
  // A double keeps looking like one, so that printing and reading again changes nothing.
  if (out.find_first_of(".en") == std::string::npos) out += ".0";
  return out;
}

template <class T> bool scalar(const YAML::Node& node, T& out) {
  if (!node.IsScalar()) return false;
  const std::string& text = node.Scalar();
  T value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  out = value;
  return true;
}

template <class T> bool list(const YAML::Node& node, std::vector<T>& out) {
  if (!node.IsSequence()) return false;
  std::vector<T> values;
  for (const auto& item : node)
    if (!parse(item, values.emplace_back())) return false;
  out = std::move(values);
  return true;
}

template <class T> YAML::Node print_list(const std::vector<T>& values) {
  YAML::Node node(YAML::NodeType::Sequence);
  node.SetStyle(YAML::EmitterStyle::Flow);
  for (const auto& value : values) node.push_back(print(value));
  return node;
}

YAML::Node read(const std::string& text, const std::string& name) {
  try {
    YAML::Node node = YAML::Load(text);
    if (node.IsNull()) node = YAML::Node(YAML::NodeType::Map);
    if (!node.IsMap()) throw Error(name + " must be a mapping of keys to values");
    return node;
  } catch (const YAML::Exception& e) {
    throw Error(cat(name, ":", e.mark.line + 1, ": not valid YAML: ", e.msg));
  }
}

}  // namespace

// --------------------------------------------------------------------------------------- Section

Section Section::from_text(const std::string& text, const std::string& name) {
  Section out;
  out.document_ = std::make_shared<Document>(Document{name, {}});
  out.node_ = read(text, name);
  return out;
}

Section Section::from_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(cat("cannot read ", file), "the configs are under configs/");
  return from_text({std::istreambuf_iterator<char>(in), {}}, file);
}

void Section::set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(cat("'", assignment, "' is not key=value"), "for example train.steps=100");
  const std::string key = assignment.substr(0, equals);
  YAML::Node value;
  try {
    value = YAML::Load(assignment.substr(equals + 1));
  } catch (const YAML::Exception& e) {
    throw Error(cat("'", assignment, "': the value is not valid YAML: ", e.msg));
  }
  YAML::Node at = node_;
  size_t begin = 0;
  for (size_t dot; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1) {
    const std::string part = key.substr(begin, dot - begin);
    YAML::Node next = at[part];
    if (!next.IsDefined() || next.IsNull()) {
      at[part] = YAML::Node(YAML::NodeType::Map);
      next.reset(at[part]);
    }
    if (!next.IsMap())
      throw Error(cat("'", assignment, "': ", key.substr(0, dot), " is a value, not a mapping"));
    at.reset(next);
  }
  at[key.substr(begin)] = value;
  document_->overridden.insert(full(key));
}

bool Section::has(const std::string& key) const {
  if (!node_.IsMap()) return false;
  const YAML::Node value = node_[key];
  return value.IsDefined() && !value.IsNull();
}

Section Section::child(const std::string& key) const {
  Section out;
  out.document_ = document_;
  out.path_ = full(key);
  out.node_ = YAML::Node(YAML::NodeType::Map);
  if (!has(key)) return out;
  if (!node_[key].IsMap())
    fail(key, cat("must be a mapping of keys to values, got '", text(key), "'"));
  out.node_.reset(node_[key]);
  return out;
}

std::string Section::text(const std::string& key) const {
  YAML::Emitter out;
  out.SetMapFormat(YAML::Flow);
  out.SetSeqFormat(YAML::Flow);
  out << node_[key];
  return out.c_str();
}

void Section::fail(const std::string& key, const std::string& message,
                   const std::string& hint) const {
  const std::string name = full(key);
  std::string where;
  if (document_) {
    // A key below an overridden one came from the command line as well.
    bool overridden = false;
    for (const auto& set : document_->overridden)
      overridden |= name == set || name.rfind(set + ".", 0) == 0;
    if (overridden) {
      where = "on the command line: ";
    } else {
      where = document_->name;
      const YAML::Node value = has(key) ? node_[key] : node_;
      if (value.IsDefined() && value.Mark().line >= 0) where += cat(":", value.Mark().line + 1);
      where += ": ";
    }
  }
  throw Error(cat(where, name, " ", message), hint);
}

std::string Section::dump() const {
  YAML::Emitter out;
  out << node_;
  return out.c_str();
}

// ---------------------------------------------------------------------------------------- values

bool parse(const YAML::Node& node, bool& out) {
  if (!node.IsScalar() || (node.Scalar() != "true" && node.Scalar() != "false")) return false;
  out = node.Scalar() == "true";
  return true;
}

bool parse(const YAML::Node& node, int64_t& out) { return scalar(node, out); }

bool parse(const YAML::Node& node, double& out) {
  double value;
  if (!scalar(node, value) || !std::isfinite(value)) return false;
  out = value;
  return true;
}

bool parse(const YAML::Node& node, std::string& out) {
  if (!node.IsScalar()) return false;
  out = node.Scalar();
  return true;
}

bool parse(const YAML::Node& node, Range& out) {
  int64_t one;
  if (parse(node, one)) {
    out = {one, one};
    return true;
  }
  std::vector<int64_t> two;
  if (!parse(node, two) || two.size() != 2) return false;
  out = {two[0], two[1]};
  return true;
}

bool parse(const YAML::Node& node, std::vector<int64_t>& out) { return list(node, out); }
bool parse(const YAML::Node& node, std::vector<double>& out) { return list(node, out); }

YAML::Node print(bool value) { return YAML::Node(value ? "true" : "false"); }
YAML::Node print(int64_t value) { return YAML::Node(value); }
YAML::Node print(double value) { return YAML::Node(shortest(value)); }
YAML::Node print(const std::string& value) { return YAML::Node(value); }
YAML::Node print(const Range& value) { return print_list<int64_t>({value.lo, value.hi}); }
YAML::Node print(const std::vector<int64_t>& value) { return print_list(value); }
YAML::Node print(const std::vector<double>& value) { return print_list(value); }

// -------------------------------------------------------------------------------------- visitors

namespace detail {

void unknown_key(const Section& at, const std::string& key, const std::vector<std::string>& known) {
  std::string hint;
  if (const auto meant = nearest(key, known); !meant.empty())
    hint = cat("did you mean '", meant, "'? ");
  hint +=
      cat("the keys of ", at.path().empty() ? "a config" : at.path(), " are: ", join(known, " "));
  at.fail(key, "is not a key", hint);
}

void check_choice(const Section& at, const std::string& key, const std::string& value,
                  Choices choices) {
  if (choices.size() == 0) return;
  std::vector<std::string> words(choices.begin(), choices.end());
  if (std::find(words.begin(), words.end(), value) != words.end()) return;
  at.fail(key, cat("must be one of ", join(words, ", "), "; got '", value, "'"));
}

std::string help_line(const std::string& key, const std::string& value, const std::string& help,
                      Choices choices) {
  std::string left = cat("  ", key, value.empty() ? "" : ": ", value);
  left.resize(std::max<size_t>(left.size() + 2, 32), ' ');
  std::vector<std::string> words(choices.begin(), choices.end());
  return cat(left, help, words.empty() ? "" : cat(" (", join(words, " | "), ")"), "\n");
}

}  // namespace detail

std::vector<std::string> differences(const YAML::Node& a, const YAML::Node& b,
                                     const std::string& prefix) {
  std::vector<std::string> out;
  const auto text = [](const YAML::Node& node) {
    YAML::Emitter emitter;
    emitter.SetMapFormat(YAML::Flow);
    emitter.SetSeqFormat(YAML::Flow);
    if (!node.IsDefined()) return std::string("(absent)");
    emitter << node;
    return std::string(emitter.c_str());
  };
  if (!a.IsMap() || !b.IsMap()) {
    if (text(a) != text(b)) out.push_back(cat(prefix, ": ", text(a), " -> ", text(b)));
    return out;
  }
  std::vector<std::string> keys;
  for (const auto& node : {a, b})
    for (const auto& item : node) {
      const auto key = item.first.as<std::string>();
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  for (const auto& key : keys) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    for (auto& line : differences(a[key], b[key], name)) out.push_back(line);
  }
  return out;
}

}  // namespace lrnn
