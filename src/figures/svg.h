#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "figures/style.h"

// SVG as text, without a library and without a network: every figure is one <svg> element that
// stands alone as a file and fits into a page as it is.
//
// Colours are written as attributes, so that a file prints well by itself, and repeated as classes
// (ink, soft, rule, paper), so that a page can restyle them for a dark screen.
namespace lrnn::figures {

// & < > " ' become entities; bytes that are not UTF-8 and control characters, which no XML may
// hold, become "?".
std::string escape(std::string_view text);
// At most two decimals, no trailing zeros, never "-0"; a number that is not finite becomes 0.
std::string number(double value);
// Letters, not bytes: how wide a UTF-8 text is on a terminal.
size_t letters(std::string_view text);
// About how many pixels the text takes at that size.
double text_width(std::string_view text, double size);

enum class Anchor { kStart, kMiddle, kEnd };

class Svg {
 public:
  Svg(double width, double height, const std::string& title);

  void line(double x1, double y1, double x2, double y2, const char* dash = "");
  void axis(double x1, double y1, double x2, double y2);
  void text(double x, double y, std::string_view text, Anchor anchor, double size = 12,
            bool soft = false, bool upright = false);
  void heading(double x, double y, std::string_view text);
  void circle(double x, double y, double r);
  void rectangle(double x, double y, double w, double h, const char* fill, double opacity);
  void polyline(const std::vector<std::pair<double, double>>& points, const Style& style);
  void band(const std::vector<std::pair<double, double>>& outline, const Style& style);
  void mark(double x, double y, const Style& style, double size = 3, double opacity = 1);
  std::string str() const;

 private:
  double width_, height_;
  std::string title_, body_;
};

}  // namespace lrnn::figures
