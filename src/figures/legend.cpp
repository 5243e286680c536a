#include "figures/legend.h"

namespace lrnn::figures {

void Legend::add(const std::string& name, const Style& style) {
  constexpr double kRow = 20;
  const double width = line() + 10 + text_width(name, 12) + 18;
  if (x_ > left_ && x_ + width > right_) x_ = left_, y_ += kRow;
  entries_.push_back({name, style, x_, y_});
  x_ += width;
}

void Legend::draw(Svg& svg, double top) const {
  for (const auto& [name, style, x, row] : entries_) {
    const double y = top + row;
    if (kind_ == kLines) svg.polyline({{x, y}, {x + line(), y}}, style);
    svg.mark(x + line() / 2, y, style);
    svg.text(x + line() + 8, y + 4, name, Anchor::kStart);
  }
}

}  // namespace lrnn::figures
