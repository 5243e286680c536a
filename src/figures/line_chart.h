#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "figures/style.h"

namespace lrnn::figures {

struct Point {
  double x, y;
  double lo, hi;  // the band around y; equal to y: none
};

struct Series {
  std::string name;
  std::vector<Point> points;        // a point that is not finite leaves a gap
  std::optional<Style> style = {};  // none: by its place among the others
};

struct Marker {
  double x;
  std::string label;
};

struct LineChart {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<Series> series = {};
  std::vector<Marker> markers = {};                 // vertical lines
  std::optional<std::pair<double, double>> y = {};  // the least range of the y axis
  bool log_x = false;
};

// One <svg> element. Lines that would hide each other are drawn side by side, which it then says.
std::string draw(const LineChart& chart);

}  // namespace lrnn::figures
