#pragma once
#include <string>
#include <vector>

#include "figures/svg.h"

namespace lrnn::figures {

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

}  // namespace lrnn::figures
