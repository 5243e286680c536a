#include "figures/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "figures/draw.h"

namespace lrnn::figures {

namespace {

std::string path(const std::vector<std::pair<double, double>>& points) {
  std::string out;
  for (const auto& [x, y] : points)
    out += fmt::format("{}{},{}", out.empty() ? "" : " ", number(x), number(y));
  return out;
}

const char* name(Anchor anchor) {
  return anchor == Anchor::kStart ? "start" : anchor == Anchor::kMiddle ? "middle" : "end";
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = bytes_of_character(text);
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (size == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      out += '?';
    else if (size > 1)
      out += text.substr(0, size);
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += text[0];
    text.remove_prefix(size ? size : 1);
  }
  return out;
}

std::string number(double value) {
  if (!std::isfinite(value)) return "0";
  std::string out = fmt::format("{:.2f}", value);
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

size_t letters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

double text_width(std::string_view text, double size) {
  return 0.6 * size * static_cast<double>(letters(text));
}

Svg::Svg(double width, double height, const std::string& title)
    : width_(width), height_(height), title_(title) {}

void Svg::line(double x1, double y1, double x2, double y2, const char* dash) {
  body_ += fmt::format(R"(<line class="rule" x1="{}" y1="{}" x2="{}" y2="{}" stroke="#d0d0d0"{}/>)"
                       "\n",
                       number(x1), number(y1), number(x2), number(y2),
                       *dash ? fmt::format(R"( stroke-dasharray="{}")", dash) : "");
}

void Svg::axis(double x1, double y1, double x2, double y2) {
  body_ += fmt::format(R"(<line class="axis" x1="{}" y1="{}" x2="{}" y2="{}" stroke="#444444"/>)"
                       "\n",
                       number(x1), number(y1), number(x2), number(y2));
}

void Svg::text(double x, double y, std::string_view text, Anchor anchor, double size, bool soft,
               bool upright) {
  const std::string turn =
      upright ? fmt::format(R"_( transform="rotate(-90 {} {})")_", number(x), number(y)) : "";
  body_ += fmt::format(
      R"(<text class="{}" x="{}" y="{}" text-anchor="{}" font-size="{}" fill="{}"{}>{}</text>)"
      "\n",
      soft ? "soft" : "ink", number(x), number(y), name(anchor), number(size),
      soft ? "#555555" : "#111111", turn, escape(text));
}

void Svg::heading(double x, double y, std::string_view text) {
  body_ += fmt::format(
      R"(<text class="ink" x="{}" y="{}" font-size="14" font-weight="bold" fill="#111111">{}</text>)"
      "\n",
      number(x), number(y), escape(text));
}

void Svg::circle(double x, double y, double r) {
  body_ +=
      fmt::format(R"(<circle class="axis" cx="{}" cy="{}" r="{}" fill="none" stroke="#444444"/>)"
                  "\n",
                  number(x), number(y), number(r));
}

void Svg::rectangle(double x, double y, double w, double h, const char* fill, double opacity) {
  body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}" fill-opacity="{}"/>)"
                       "\n",
                       number(x), number(y), number(w), number(h), fill, number(opacity));
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, const Style& style) {
  body_ += fmt::format(
      R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round"{}/>)"
      "\n",
      path(points), style.colour, number(style.width),
      *style.dash ? fmt::format(R"( stroke-dasharray="{}")", style.dash) : "");
}

void Svg::band(const std::vector<std::pair<double, double>>& outline, const Style& style) {
  body_ += fmt::format(R"(<polygon points="{}" fill="{}" fill-opacity="0.18"/>)"
                       "\n",
                       path(outline), style.colour);
}

void Svg::mark(double x, double y, const Style& style, double size, double opacity) {
  const double s = size;
  const auto look =
      style.open ? fmt::format(R"(class="open" fill="#ffffff" stroke="{}" stroke-width="1.2")",
                               style.colour)
                 : fmt::format(R"(fill="{}" fill-opacity="{}")", style.colour, number(opacity));
  const auto polygon = [&](const std::vector<std::pair<double, double>>& corners) {
    body_ += fmt::format(R"(<polygon points="{}" {}/>)"
                         "\n",
                         path(corners), look);
  };
  switch (style.mark) {
    case 0:
      body_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}" {}/>)"
                           "\n",
                           number(x), number(y), number(s), look);
      break;
    case 1:
      body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" {}/>)"
                           "\n",
                           number(x - s), number(y - s), number(2 * s), number(2 * s), look);
      break;
    case 2: polygon({{x, y - 1.3 * s}, {x + 1.2 * s, y + s}, {x - 1.2 * s, y + s}}); break;
    case 3:
      polygon({{x, y - 1.4 * s}, {x + 1.4 * s, y}, {x, y + 1.4 * s}, {x - 1.4 * s, y}});
      break;
    case 4: polygon({{x, y + 1.3 * s}, {x + 1.2 * s, y - s}, {x - 1.2 * s, y - s}}); break;
    default:
      body_ += fmt::format(
          R"(<path d="M{0},{1}L{2},{3}M{0},{3}L{2},{1}" fill="none" stroke="{4}" stroke-width="{5}" stroke-opacity="{6}"/>)"
          "\n",
          number(x - s), number(y - s), number(x + s), number(y + s), style.colour,
          style.open ? "1" : "2", number(opacity));
  }
}

std::string Svg::str() const {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
      R"(font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" role="img">)"
      "\n"
      R"(<title>{2}</title>)"
      "\n"
      R"(<rect class="paper" width="{0}" height="{1}" fill="#ffffff"/>)"
      "\n{3}</svg>\n",
      number(width_), number(height_), escape(title_), body_);
}

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
