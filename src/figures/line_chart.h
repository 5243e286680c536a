#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lrnn::figures {

struct Point {
  double x, y;
  double lo, hi;  // the band around y; equal to y: none
};

struct Series {
  std::string name;
  std::vector<Point> points;  // a point that is not finite leaves a gap
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

std::string draw(const LineChart& chart);  // one <svg> element

}  // namespace lrnn::figures
