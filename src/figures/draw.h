#pragma once
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "figures/style.h"

// What can be drawn, each a struct that `draw` turns into one <svg> element.
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
  double height = 300;  // of the plot between its axes, in pixels
};

// Lines that would hide each other are drawn side by side, which it then says.
std::string draw(const LineChart& chart);

// Pictures of eigenvalues, of what a recurrence may do to its state at one token: the letters that
// the values belong to, each with a look of its own; values name them by index.
struct Letter {
  std::string name;
  Style style;
};

// Real eigenvalues, one row of bars on [-1, 1] each, with the boundary at 0 that a range of [0, 1]
// cannot cross.
struct Strip {
  std::string name;
  // Of each letter: the share of all values that are its, over equal bins from -1 to 1.
  std::vector<std::vector<double>> shares;
};
struct Strips {
  std::string title = {}, x_label = {};
  std::vector<Letter> letters = {};
  std::vector<Strip> rows = {};
};
std::string draw(const Strips& strips);

// Complex eigenvalues with the unit circle, one small plane per entry.
struct Plane {
  struct Dot {
    std::complex<double> value;
    size_t letter = 0;
  };
  std::string name;
  std::vector<Dot> dots;
};
struct Planes {
  std::string title = {};
  std::vector<Letter> letters = {};
  std::vector<Plane> planes = {};
};
std::string draw(const Planes& planes);

// How many of `values` fall into each of `bins` equal bins over [-1, 1], as shares of `all` of them
// (0: of these); ends are included.
std::vector<double> shares(const std::vector<double>& values, size_t bins, size_t all = 0);
// The same as one line of block letters for a terminal: ▁▂▃▄▅▆▇█, "·" for an empty bin.
std::string bars(const std::vector<double>& shares);

// States in circles, arrows with their letters. Nodes carry the ids state-0, state-1, … so that a
// script can point at one.
struct Graph {
  struct Node {
    std::string label;
    bool doubled = false;  // accepting
  };
  struct Edge {
    size_t from, to;
    std::string label;
  };
  std::string title;
  std::vector<Node> nodes;
  std::vector<Edge> edges;  // at most one per pair
  size_t start = 0;
};
std::string draw(const Graph& graph);

// Figures below one another as one: each is an <svg> element, and so is the result.
std::string stack(const std::vector<std::string>& figures, const std::string& title);

}  // namespace lrnn::figures
