#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/config.h"

// One value each way: from YAML, and back to the YAML that reads as the same value; and to JSON.
namespace lrnn {
namespace {

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

// 0.digits times ten to the `point`; no zeros at either end of the digits, none at all for zero.
struct Decimal {
  bool ok = false, negative = false;
  std::string digits;
  int64_t point = 0;
};

Decimal read_decimal(const std::string& text) {
  Decimal out;
  size_t i = 0;
  const auto take_digits = [&] {
    const size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') out.digits += text[i++];
    return i - begin;
  };
  if (i < text.size() && text[i] == '-') out.negative = true, ++i;
  size_t count = take_digits();
  out.point = int64_t(count);
  if (i < text.size() && text[i] == '.') ++i, count += take_digits();
  if (count == 0) return out;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    i += 1 + (i + 1 < text.size() && text[i + 1] == '+');
    int32_t exponent = 0;
    const auto read = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (read.ec != std::errc()) return out;
    out.point += exponent;
    i = size_t(read.ptr - text.data());
  }
  const size_t first = out.digits.find_first_not_of('0');
  out.digits.erase(0, first);  // all of them where there is none
  out.point = out.digits.empty() ? 0 : out.point - int64_t(first);
  out.digits.erase(out.digits.find_last_not_of('0') + 1);
  out.ok = i == text.size();
  return out;
}

bool scalar(const YAML::Node& node, double& out) {
  if (!node.IsScalar()) return false;
  const std::string& text = node.Scalar();
  double value;
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

}  // namespace

bool parse(const YAML::Node& node, bool& out) {
  if (!node.IsScalar() || (node.Scalar() != "true" && node.Scalar() != "false")) return false;
  out = node.Scalar() == "true";
  return true;
}

// -12, 1e3, 1.5e3 and 1000.0 are whole numbers, to the last digit; 1.5 is not.
Whole parse_whole(const std::string& text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end == text.data() + text.size()) return Whole::kYes;
  const Decimal number = read_decimal(text);
  if (!number.ok || number.point < int64_t(number.digits.size())) return Whole::kNo;
  if (number.digits.empty()) return out = 0, Whole::kYes;
  if (number.point > 19) return Whole::kTooLarge;
  const std::string digits = (number.negative ? "-" : "") + number.digits +
                             std::string(size_t(number.point) - number.digits.size(), '0');
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return read.ec == std::errc() ? Whole::kYes : Whole::kTooLarge;
}

bool parse(const YAML::Node& node, int64_t& out) {
  int64_t value = 0;
  if (!node.IsScalar() || parse_whole(node.Scalar(), value) != Whole::kYes) return false;
  out = value;
  return true;
}

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
YAML::Node print(const std::string& value) {
  YAML::Node node(value);
  node.SetTag("!");  // "01" is not the number 1
  return node;
}
YAML::Node print(const Range& value) { return print_list<int64_t>({value.lo, value.hi}); }
YAML::Node print(const std::vector<int64_t>& value) { return print_list(value); }
YAML::Node print(const std::vector<double>& value) { return print_list(value); }

nlohmann::ordered_json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    auto out = nlohmann::ordered_json::object();
    for (const auto& item : node) out[item.first.as<std::string>()] = to_json(item.second);
    return out;
  }
  if (node.IsSequence()) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& item : node) out.push_back(to_json(item));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  bool truth;
  int64_t whole;
  double real;
  if (node.Tag() != "!" && parse(node, truth)) return truth;  // "!": it was quoted
  const bool fraction = node.Scalar().find_first_of(".eE") != std::string::npos;  // 1.0 stays one
  if (node.Tag() != "!" && !fraction && parse(node, whole)) return whole;
  if (node.Tag() != "!" && parse(node, real)) return real;
  return node.Scalar();
}

}  // namespace lrnn
