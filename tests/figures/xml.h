#pragma once
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

// What is wrong with a document made of elements, attributes and text: "" when it is well formed
// and holds no number that is not one. Enough for the XML we write; it knows no comments or CDATA.
inline std::string xml_problem(const std::string& text) {
  static const std::regex tag(R"(<(/?)([A-Za-z0-9]+)((?:\s+[A-Za-z0-9:-]+="[^"<]*")*)\s*(/?)>)");
  static const std::regex stray(R"(&(?!(amp|lt|gt|quot|#39);)|[<>])");
  static const std::regex not_a_number(R"re(="[^"]*\b(nan|inf)\b[^"]*")re", std::regex::icase);
  std::vector<std::string> open;
  size_t roots = 0;
  auto at = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), tag), end; it != end; ++it) {
    const auto& m = *it;
    if (std::regex_search(std::string(at, m[0].first), stray)) return "stray < > or &: " + m.str();
    if (std::regex_search(m[0].first, m[0].second, not_a_number)) return "not a number: " + m.str();
    at = m[0].second;
    if (open.empty()) ++roots;
    if (m[1].length()) {
      if (open.empty() || open.back() != m[2]) return "closes nothing: " + m.str();
      open.pop_back();
    } else if (!m[4].length()) {
      open.push_back(m[2]);
    }
  }
  if (std::regex_search(std::string(at, text.cend()), stray)) return "stray < > or & at the end";
  if (!open.empty()) return "never closed: " + open.back();
  return roots == 0 ? "no element" : "";
}
