#include "figures/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figures/axis.h"
#include "figures/svg.h"

namespace lrnn::figures {

std::vector<double> shares(const std::vector<double>& values, size_t bins) {
  std::vector<double> out(bins, 0);
  size_t count = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    // A float32 key has length 1 within rounding: an eigenvalue of -6e-8 is a 0, not a negative
    // one.
    const double rounded = std::clamp(x + 1e-6, -1.0, 1.0);
    const double at = (rounded + 1) / 2 * static_cast<double>(bins);
    ++out[std::min(static_cast<size_t>(at), bins - 1)], ++count;
  }
  for (double& share : out) share /= static_cast<double>(std::max<size_t>(count, 1));
  return out;
}

std::string bars(const std::vector<double>& shares) {
  static const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double top = shares.empty() ? 0 : *std::max_element(shares.begin(), shares.end());
  std::string out;
  for (const double share : shares)
    out += share <= 0 ? "·" : kBlocks[std::min(7, static_cast<int>(8 * std::sqrt(share / top)))];
  return out;
}

std::string draw(const Strips& strips) {
  constexpr double kRow = 34, kTop = 64, kWidth = 720, kRight = 24;
  double left = 70;
  for (const auto& row : strips.rows) left = std::max(left, text_width(row.name, 12) + 24);
  const double bottom = kTop + kRow * static_cast<double>(std::max<size_t>(strips.rows.size(), 1));
  const Scale sx{.lo = -1, .hi = 1, .from = left, .to = kWidth - kRight};

  Svg svg(kWidth, bottom + 54, strips.title);
  svg.heading(20, 24, strips.title);
  svg.rectangle(sx(0), kTop, sx(1) - sx(0), bottom - kTop, "#7F7F7F", 0.12);
  svg.text(sx(0.5), kTop - 8, "range [0,1] reaches only this half", Anchor::kMiddle, 11, true);
  svg.text(sx(-1), kTop - 8, "reflection", Anchor::kStart, 11, true);
  for (const auto& t : ticks(-1, 1, 4)) {
    svg.line(sx(t.at), kTop, sx(t.at), bottom);
    svg.text(sx(t.at), bottom + 19, t.label, Anchor::kMiddle, 12, true);
  }
  svg.axis(sx(0), kTop, sx(0), bottom);
  for (size_t i = 0; i < strips.rows.size(); ++i) {
    const auto& row = strips.rows[i];
    const double base = kTop + kRow * static_cast<double>(i + 1) - 4;
    const double bins = static_cast<double>(row.shares.size());
    svg.text(left - 12, base - 6, row.name, Anchor::kEnd);
    svg.line(sx(-1), base, sx(1), base);
    // Roots, so that a value used by one token in a hundred can still be seen.
    for (size_t b = 0; b < row.shares.size(); ++b) {
      if (!(row.shares[b] > 0)) continue;
      const double height = std::max(1.5, (kRow - 8) * std::sqrt(row.shares[b]));
      const double x = sx(-1 + 2 * static_cast<double>(b) / bins);
      svg.rectangle(x, base - height, std::max(1.5, (sx(1) - sx(-1)) / bins - 0.5), height,
                    style(0).colour, 1);
    }
  }
  svg.text((left + kWidth - kRight) / 2, bottom + 42, strips.x_label, Anchor::kMiddle);
  return svg.str();
}

std::string draw(const Planes& figure) {
  constexpr double kCell = 172, kRadius = 66, kTop = 40, kMargin = 16;
  const size_t columns = std::clamp<size_t>(figure.planes.size(), 1, 4);
  const size_t rows = (std::max<size_t>(figure.planes.size(), 1) + columns - 1) / columns;
  const double width =
      2 * kMargin + std::max(kCell * static_cast<double>(columns), text_width(figure.title, 14));
  Svg svg(width, kTop + (kCell + 16) * static_cast<double>(rows) + kMargin, figure.title);
  svg.heading(kMargin, 24, figure.title);
  for (size_t i = 0; i < figure.planes.size(); ++i) {
    const double x = kMargin + kCell * (static_cast<double>(i % columns) + 0.5);
    const double y = kTop + 22 + (kCell + 16) * static_cast<double>(i / columns) + kRadius + 8;
    svg.text(x, y - kRadius - 18, figure.planes[i].name, Anchor::kMiddle);
    svg.line(x - kRadius - 8, y, x + kRadius + 8, y);
    svg.line(x, y - kRadius - 8, x, y + kRadius + 8);
    svg.circle(x, y, kRadius);
    svg.text(x - kRadius - 3, y + 14, "-1", Anchor::kEnd, 10, true);
    svg.text(x + kRadius + 3, y + 14, "1", Anchor::kStart, 10, true);
    svg.text(x + 4, y - kRadius - 3, "i", Anchor::kStart, 10, true);
    for (const auto& z : figure.planes[i].values)
      if (std::isfinite(z.real()) && std::isfinite(z.imag()))
        svg.mark(x + kRadius * z.real(), y - kRadius * z.imag(), style(0), 2, 0.35);
  }
  return svg.str();
}

}  // namespace lrnn::figures
