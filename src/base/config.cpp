#include "base/config.h"

#include <algorithm>

#include "base/text.h"
#include "base/yaml_text.h"

namespace lrnn {
namespace {

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

}  // namespace

// --------------------------------------------------------------------------------------- Section

Section Section::from_text(const std::string& text, const std::string& name) {
  Section out;
  out.document_ = std::make_shared<Document>(Document{name, {}});
  YamlProblem problem;
  out.node_ = read_yaml(text, problem);
  if (!problem.what.empty())
    throw Error(cat(name, ":", problem.line, ": ", problem.what), problem.hint);
  if (out.node_.IsNull()) out.node_ = YAML::Node(YAML::NodeType::Map);
  if (!out.node_.IsMap()) throw Error(name + " must be a mapping of keys to values");
  return out;
}

Section Section::from_file(const std::string& file) {
  return from_text(read_text_file(file, {.hint = "a config is a YAML file, such as "
                                                 "configs/tiny.yaml"}),
                   file);
}

void Section::set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(cat("'", assignment, "' is not key=value"), "for example train.steps=100");
  const std::string key = assignment.substr(0, equals), text = assignment.substr(equals + 1);
  YamlProblem problem;
  YAML::Node value = read_yaml(text, problem);
  // What YAML does not read as a value may be a text; whoever wants another type says so.
  if (!problem.what.empty() || (value.IsNull() && text != "~" && text != "null"))
    value = YAML::Node(text);
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
  auto& given = document_->given;
  std::erase_if(given, [&](const auto& item) { return item.first.starts_with(full(key) + "."); });
  given[full(key)] = {text, problem.what};
}

const Section::Given* Section::given(const std::string& key) const {
  if (!document_) return nullptr;
  const auto found = document_->given.find(full(key));
  return found == document_->given.end() ? nullptr : &found->second;
}

bool Section::read(const std::string& key, std::string& out) const {
  const Given* const text = given(key);
  if (!text) return parse(node_[key], out);
  out = text->text;
  return true;
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
  if (!node_[key].IsMap()) wrong_type(key, "a mapping of keys to values");
  out.node_.reset(node_[key]);
  return out;
}

std::string Section::text(const std::string& key) const {
  if (const Given* const text = given(key)) return text->text;
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
    // A key below a given one came from the command line as well.
    bool on_command_line = false;
    for (const auto& [key_given, value] : document_->given)
      on_command_line |= name == key_given || name.starts_with(key_given + ".");
    if (on_command_line) {
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

void Section::wrong_type(const std::string& key, const std::string& kind) const {
  int64_t whole = 0;
  const YAML::Node value = node_[key];
  std::string limits, hint;
  if (kind.ends_with("whole number") && value.IsScalar() &&
      parse_whole(value.Scalar(), whole) == Whole::kTooLarge)
    limits = cat(" between ", INT64_MIN, " and ", INT64_MAX);
  if (kind == lrnn::kind(std::string())) hint = cat("put quotes around it: '", text(key), "'");
  if (const Given* const from = given(key)) hint = from->problem;
  fail(key, cat("must be ", kind, limits, ", got '", text(key), "'"), hint);
}

std::string Section::dump() const {
  YAML::Emitter out;
  out << node_;
  return out.c_str();
}

// -------------------------------------------------------------------------------------- visitors

namespace detail {

void check_keys(const Section& at, const std::vector<std::string>& known) {
  for (const auto& item : at.node()) {
    if (!item.first.IsScalar()) at.fail(YAML::Dump(item.first), "is not a key");
    const auto& key = item.first.Scalar();
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string hint;
    if (const auto meant = nearest(key, known); !meant.empty())
      hint = cat("did you mean '", meant, "'? ");
    hint +=
        cat("the keys of ", at.path().empty() ? "a config" : at.path(), " are: ", join(known, " "));
    at.fail(key, "is not a key", hint);
  }
}

std::string type_name(const std::string& kind) {
  if (kind == lrnn::kind(std::string())) return "text";
  if (kind == lrnn::kind(Range())) return "range";
  return kind.starts_with("a ") ? kind.substr(2) : kind;
}

}  // namespace detail

std::string help(const std::vector<Key>& keys) {
  std::string out;
  for (const auto& key : keys) {
    const std::string value = key.standard.IsNull() ? "" : YAML::Dump(key.standard);
    std::string left = cat("  ", key.name, value.empty() ? "" : ": ", value);
    left.resize(std::max<size_t>(left.size() + 2, 32), ' ');
    const auto& words = key.limits.words();
    const std::string takes = !words.empty()               ? join(words, " | ")
                              : !key.limits.text().empty() ? cat(key.type, ", ", key.limits.text())
                                                           : key.type;
    out += cat(left, key.help, " (", takes, ")\n");
  }
  return out;
}

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
  // An absent node throws when it is asked for its kind.
  if (!a.IsDefined() || !b.IsDefined() || !a.IsMap() || !b.IsMap()) {
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
