#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "figures/svg.h"

// What charts are made of: axes, legends, and lines kept apart.
namespace lrnn::figures {

// Where the numbers lo .. hi land between the pixels from .. to, evenly or by ratio.
struct Scale {
  double lo = 0, hi = 1, from = 0, to = 1;
  bool log = false;
  double operator()(double x) const;
};

struct Tick {
  double at;
  std::string label;
};

// About `count` round numbers (1, 2 or 5 times a power of ten) inside lo .. hi.
std::vector<Tick> ticks(double lo, double hi, int count);
// Powers of two (of four, of sixteen … when there would be more than `count`) inside lo .. hi.
std::vector<Tick> log_ticks(double lo, double hi, int count);
// lo .. hi widened outwards to round numbers; never empty, whatever is given.
void round_out(double& lo, double& hi, int count);

// Names with their marks (and, of lines, a piece of them), left to right in as many rows as needed.
class Legend {
 public:
  enum Kind { kLines, kMarksOnly };
  Legend(Kind kind, double left, double right)
      : kind_(kind), left_(left), right_(right), x_(left) {}
  void add(const std::string& name, const Style& style);
  void draw(Svg& svg, double top) const;
  double height() const { return entries_.empty() ? 0 : y_; }  // from the first row to the last

 private:
  struct Entry {
    std::string name;
    Style style;
    double x, y;
  };
  double line() const { return kind_ == kLines ? 36 : 10; }

  Kind kind_;
  double left_, right_, x_, y_ = 0;
  std::vector<Entry> entries_;
};

// A line in pixels, from left to right, in pieces where it has gaps.
using Piece = std::vector<std::pair<double, double>>;
using Line = std::vector<Piece>;

// The height of the line at x, if it runs there.
std::optional<double> height_at(const Line& line, double x);

// How far up or down each point of each line is moved so that lines that run level on the same
// spot, all at 1.0 for example, are seen side by side: a few pixels, the first line on top; nothing
// for points of lines that merely cross or that fall together.
std::vector<std::vector<std::vector<double>>> shifts(const std::vector<Line>& lines);

}  // namespace lrnn::figures
