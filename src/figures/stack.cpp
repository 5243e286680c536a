#include "figures/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "figures/svg.h"

namespace lrnn::figures {
namespace {

// An attribute of the outermost element.
double size_of(const std::string& svg, const char* name) {
  const std::string key = fmt::format(" {}=\"", name);
  const auto at = svg.find(key);
  check(svg.starts_with("<svg ") && at < svg.find('>'), "a figure without a ", name);
  return std::strtod(svg.c_str() + at + key.size(), nullptr);
}

}  // namespace

std::string stack(const std::vector<std::string>& figures, const std::string& title) {
  double width = 0, height = 0;
  std::string body;
  for (const auto& figure : figures) {
    const double top = height;
    width = std::max(width, size_of(figure, "width"));
    height += size_of(figure, "height");
    // An <svg> inside another has a place in it.
    body += fmt::format("<svg y=\"{}\" ", number(top)) + figure.substr(5);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n{3}</svg>\n",
      number(width), number(height), escape(title), body);
}

}  // namespace lrnn::figures
